"""The explorer: a page in the browser, served from this machine, that shows how a learned machine works.

`server.py` puts together what the other files answer. `page/` is the page itself: plain JavaScript, no build step.
"""
