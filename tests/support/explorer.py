"""How the page asks the explorer's server."""

HEADERS = {"X-Nram": "1", "Content-Type": "application/json"}
ADDRESS = "http://127.0.0.1:8642"
