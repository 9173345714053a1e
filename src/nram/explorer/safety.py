"""Who may ask the explorer, and what its answers allow a browser to do.

A page on the internet can make a browser send requests to this machine. It cannot set the Host header to a name of its
own without being refused (DNS rebinding), it cannot send our header without asking first, and it learns nothing of an
answer. Where others reach the port, every request needs the token that `nram serve` prints.
"""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nram.explorer.settings import Settings, is_loopback

COOKIE = "nram_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Refuses requests that do not come from the page itself. Wraps the application."""

    def __init__(self, app: ASGIApp, settings: Settings):
        self.app, self.settings = app, settings
        self.cookie = f"{COOKIE}_{settings.port}"  # cookies do not tell ports apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self.refused(scope)
        await (answer or self.app)(scope, receive, send_safely)

    def refused(self, scope: Scope) -> Response | None:
        """The answer to a request that is refused, or that brings the token; None if it may be answered."""
        headers, method = Headers(scope=scope), scope["method"]
        if not self.knows_host(headers.get("host", "")):
            return _no("this server answers only to its own address: open the one that nram serve printed", 421)
        if method not in ("GET", "HEAD", "POST"):
            return _no("use GET or POST", 405)
        if self.settings.token is not None:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if given and method == "GET" and self.is_token(given):
                answer = RedirectResponse("/", 303)
                # Not strict: the page or the program in which the address was opened is another site to the browser.
                # What acts is a POST, to which a lax cookie of another site is not added; others are checked below.
                answer.set_cookie(self.cookie, given, httponly=True, samesite="lax", path="/")
                return answer
            if not self.is_token(_cookie(headers.get("cookie", ""), self.cookie)):
                return PlainTextResponse("Open the address that nram serve printed: it ends in ?token=...\n", 401)
        if method == "POST":
            own = (
                headers.get("x-nram") == "1" and headers.get("content-type", "").partition(";")[0] == "application/json"
            )
            if not own or not self.is_own_origin(headers):
                return _no("only the page itself may ask for this", 403)
        elif headers.get("sec-fetch-site") == "cross-site" and scope["path"].startswith("/api/"):
            return _no("only the page itself may ask for this", 403)
        return None

    def knows_host(self, host: str) -> bool:
        """Whether a Host header names this server. A name of somebody else's may lead to this address too."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        if port != self.settings.port or "@" in host:
            return False
        return is_loopback(name) if is_loopback(self.settings.host) else self._is_named(name)

    def _is_named(self, name: str) -> bool:
        """With a token no other site can use an answer. So any address will do, and the name that was given."""
        numbers = name.replace(".", "").isdecimal() or ":" in name
        return numbers or name in (self.settings.host, "localhost")

    def is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), (self.settings.token or "").encode())

    def is_own_origin(self, headers: Headers) -> bool:
        """Browsers name the origin of a POST. Programs that are no browsers may leave it out."""
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "same-origin") == "same-origin"
        return origin == f"http://{headers.get('host', '')}"


def _cookie(text: str, name: str) -> str:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _no(words: str, status: int) -> Response:
    return JSONResponse({"error": words}, status)
