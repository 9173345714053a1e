"""Routes of the explorer: bodies are bounded and checked, errors become messages, slow work runs in threads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from nram.errors import NramError
from nram.explorer.settings import MOST_BODY, MOST_STREAMS
from nram.files import parse_json
from nram.programs.ir import ProgramError
from nram.records import read_record

T = TypeVar("T")
BODY_SECONDS = 20.0  # for a whole request
HEARTBEAT = 10.0  # seconds: a stream that nobody reads any more is noticed when something is sent


class Refused(NramError):
    """A request that cannot be answered, with the status of the answer."""

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status


class Turns:
    """Slow work that one request does at a time. Few may wait for it, so that threads are left for the others."""

    def __init__(self, most_waiting: int):
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(most_waiting)

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise Refused("too many requests wait for the same work: try again in a moment", 429)
        try:
            with self._lock:
                yield
        finally:
            self._places.release()


def action(path: str, kind: type[T], answer: Callable[[Any, T], Any]) -> Route:
    """A POST. Its body has the fields of a dataclass. `answer(explorer, request)` runs in a thread."""

    async def endpoint(request: Request) -> Response:
        try:
            body = await _body(request)
            return await _answered(request, lambda explorer: answer(explorer, read_record(kind, body, "the request")))
        except Refused as error:
            return refusal(error)

    return Route(path, endpoint, methods=["POST"])


def reading(path: str, answer: Callable[[Any, Mapping[str, str]], Any]) -> Route:
    """A GET. `answer(explorer, parts of the path)` runs in a thread."""

    async def endpoint(request: Request) -> Response:
        return await _answered(request, lambda explorer: answer(explorer, request.path_params))

    return Route(path, endpoint, methods=["GET"])


def stream(path: str, events: Callable[[Any, Mapping[str, str]], AsyncIterator[tuple[str, Any]]]) -> Route:
    """A GET answered by server-sent events: names and values. `events` refuses before it yields the first."""

    async def endpoint(request: Request) -> Response:
        explorer = request.app.state.explorer
        if explorer.streams >= MOST_STREAMS:
            return refusal(Refused("too many pages watch this server: close some of them", 429))
        found = events(explorer, request.path_params)
        explorer.streams += 1  # at once: many may come together
        try:
            first = await anext(found, None)
        except BaseException as error:
            explorer.streams -= 1
            if isinstance(error, NramError | OSError):
                return refusal(_told(error))
            raise
        return _Stream(explorer, first, found)

    return Route(path, endpoint, methods=["GET"])


class _Stream(StreamingResponse):
    """The events of a stream. Its place is given back however it ends, also if it is never sent."""

    def __init__(self, explorer: Any, first: tuple[str, Any] | None, rest: AsyncIterator[tuple[str, Any]]):
        super().__init__(_sent(first, rest), media_type="text/event-stream")
        self.explorer, self.rest = explorer, rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.explorer.streams -= 1
            if isinstance(self.rest, AsyncGenerator):
                await self.rest.aclose()


async def _sent(first: tuple[str, Any] | None, rest: AsyncIterator[tuple[str, Any]]) -> AsyncIterator[str]:
    following: asyncio.Task[tuple[str, Any] | None] | None = None
    try:
        event = first
        while event is not None:
            yield f"event: {event[0]}\ndata: {json.dumps(event[1])}\n\n"
            following = asyncio.ensure_future(anext(rest, None))
            while not (await asyncio.wait([following], timeout=HEARTBEAT))[0]:
                yield ": still here\n\n"
            event = following.result()
    except (NramError, OSError) as error:  # it was begun, so the status cannot say it
        yield f"event: failed\ndata: {json.dumps({'error': str(_told(error))})}\n\n"
    finally:
        if following is not None and not following.done():
            following.cancel()
            await asyncio.wait([following])


def _told(error: NramError | OSError) -> NramError:
    """An error in words. A file may vanish, or may not be read, while it is looked at."""
    if isinstance(error, NramError):
        return error
    return NramError(f"{error.filename or 'a file'} cannot be read: {error.strerror}")


async def _body(request: Request) -> Any:
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                content += part
                if len(content) > MOST_BODY:
                    raise Refused(f"the request is larger than {MOST_BODY >> 20} MiB", 413)
    except TimeoutError:
        raise Refused(f"the request did not arrive within {BODY_SECONDS:g} s", 408) from None
    except ClientDisconnect:
        raise Refused("the request ended early") from None
    try:
        return parse_json(bytes(content).decode())
    except UnicodeDecodeError:
        raise Refused("the request cannot be read: it is not UTF-8 text") from None
    except ValueError as error:
        raise Refused(f"the request cannot be read: {error}") from None


async def _answered(request: Request, answer: Callable[[Any], Any]) -> Response:
    try:
        return JSONResponse(await run_in_threadpool(answer, request.app.state.explorer))
    except (NramError, OSError) as error:
        return refusal(_told(error))


def refusal(error: NramError) -> Response:
    """The answer that says what is wrong. Problems of a program's text have their lines."""
    value: dict[str, Any] = {"error": _for_the_page(str(error))}
    if isinstance(error, ProgramError):
        value["lines"] = [_with_line(_for_the_page(problem)) for problem in error.problems]
    return JSONResponse(value, getattr(error, "status", 400))


def _for_the_page(words: str) -> str:
    """Files of users are named to the server, not to a command that the reader of the page could repeat."""
    return words.replace("name its file (--", "name its file when the explorer starts (nram serve --")


def _with_line(problem: str) -> tuple[int | None, str]:
    """A problem with the line that it names at its beginning ('line 3: ...')."""
    head, colon, rest = problem.partition(": ")
    word, _, number = head.partition(" ")
    if colon and word == "line" and number.isdecimal() and len(number) < 9:
        return int(number), rest
    return None, problem
