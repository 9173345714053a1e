"""The server of the explorer: its routes together, its page, and how it starts and ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nram.errors import UsageError
from nram.explorer import jobs, networks, programs, running, runs
from nram.explorer.connections import Connection
from nram.explorer.jobs import Jobs
from nram.explorer.safety import Guard
from nram.explorer.settings import MOST_WAITING, Settings
from nram.pictures.shapes import style_sheet

PAGE = files("nram.explorer").joinpath("page")
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
WAIT = 3  # seconds at the end, for answers that are being sent


@dataclass
class Explorer:
    """What the answers share."""

    settings: Settings
    jobs: Jobs
    streams: int = 0
    """Open at the moment."""


def create_app(settings: Settings) -> Starlette:
    """The application. Its state has the explorer, whose jobs are to be closed at the end."""
    routes = [*programs.ROUTES, *running.ROUTES, *networks.ROUTES, *runs.ROUTES, *jobs.ROUTES]
    page = [Route("/", _file("index.html")), *(Route(f"/{name}", _file(name)) for name in page_files())]
    app = Starlette(
        routes=[*routes, *page],
        middleware=[Middleware(Guard, settings=settings)],
        exception_handlers={404: _unknown, 405: _unknown, 500: _broken},
    )
    app.state.explorer = Explorer(settings, Jobs(settings))
    return app


# ---- the page


@cache
def page_files() -> dict[str, str]:
    """The files of the page by their names; read once."""
    found = {one.name: one.read_text() for one in PAGE.iterdir() if one.name.endswith(tuple(TYPES))}
    return {**found, "shapes.css": style_sheet()}


def _file(name: str) -> Callable[[Request], Response]:
    content, kind = page_files()[name], TYPES[name[name.rindex(".") :]]
    return lambda request: Response(content, media_type=kind)


def _unknown(request: Request, error: Exception) -> Response:
    return JSONResponse(
        {"error": f"there is no {request.method} {request.url.path}"}, getattr(error, "status_code", 404)
    )


def _broken(request: Request, error: Exception) -> Response:
    """A mistake of ours. Its traceback goes to the log, not to the page."""
    return JSONResponse({"error": "this is a fault in nram: the terminal of nram serve shows more"}, 500)


# ---- start and end


def listen(settings: Settings) -> tuple[Settings, socket.socket]:
    """A socket on the address that was asked for. The settings then have its port, where any would do."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with contextlib.ExitStack() as unless_bound:
            found = unless_bound.enter_context(socket.socket(family, kind, protocol))
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            unless_bound.pop_all()
    except OSError as error:
        what = f"{settings.host}, port {settings.port}: {error.strerror}"
        raise UsageError(f"cannot listen on {what}; choose another --port (0: any that is free) or --host") from None
    return replace(settings, port=found.getsockname()[1]), found


def serve(
    settings: Settings, listening: socket.socket, ready: Callable[[], None], stopping: Callable[[], bool]
) -> None:
    """Answer until `stopping` says so. Then jobs are asked to save their work, and no process is left."""
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_WAITING,
        timeout_graceful_shutdown=WAIT,
        lifespan="off",
    )
    server = uvicorn.Server(config)
    # In a thread of its own: uvicorn then leaves signals alone, which `nram.process` notices.
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        ready()
        while thread.is_alive() and not stopping():
            time.sleep(0.1)
    finally:
        app.state.explorer.jobs.close()
        server.should_exit = True
        thread.join(2 * WAIT)
