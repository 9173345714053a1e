"""Routes of the explorer: bodies are bounded and checked, errors become messages, slow work runs in threads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from nram.errors import NramError
from nram.explorer.settings import MOST_BODY, MOST_STREAMS
from nram.files import parse_json
from nram.programs.ir import ProgramError
from nram.records import read_record

T = TypeVar("T")
HEARTBEAT = 10.0  # seconds: a stream that nobody reads any more is noticed when something is sent


class Refused(NramError):
    """A request that cannot be answered, with the status of the answer."""

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status


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
        try:
            found = events(explorer, request.path_params)
            first = await anext(found, None)
        except NramError as error:
            return refusal(error)
        return StreamingResponse(_sent(explorer, first, found), media_type="text/event-stream")

    return Route(path, endpoint, methods=["GET"])


async def _sent(
    explorer: Any, first: tuple[str, Any] | None, rest: AsyncIterator[tuple[str, Any]]
) -> AsyncIterator[str]:
    explorer.streams += 1
    following: asyncio.Task[tuple[str, Any] | None] | None = None
    try:
        event = first
        while event is not None:
            yield f"event: {event[0]}\ndata: {json.dumps(event[1])}\n\n"
            following = asyncio.ensure_future(anext(rest, None))
            while not (await asyncio.wait([following], timeout=HEARTBEAT))[0]:
                yield ": still here\n\n"
            event = following.result()
    except NramError as error:  # it was begun, so the status cannot say it
        yield f"event: failed\ndata: {json.dumps({'error': str(error)})}\n\n"
    finally:
        explorer.streams -= 1
        if following is not None:
            following.cancel()


async def _body(request: Request) -> Any:
    content = bytearray()
    try:
        async for part in request.stream():
            content += part
            if len(content) > MOST_BODY:
                raise Refused(f"the request is larger than {MOST_BODY >> 20} MiB", 413)
    except ClientDisconnect:
        raise Refused("the request ended early") from None
    try:
        return parse_json(bytes(content).decode())
    except ValueError as error:
        raise Refused(f"the request is not JSON: {error}") from None


async def _answered(request: Request, answer: Callable[[Any], Any]) -> Response:
    try:
        return JSONResponse(await run_in_threadpool(answer, request.app.state.explorer))
    except NramError as error:
        return refusal(error)


def refusal(error: NramError) -> Response:
    """The answer that says what is wrong. Problems of a program's text have their lines."""
    value: dict[str, Any] = {"error": str(error)}
    if isinstance(error, ProgramError):
        value["lines"] = [_with_line(problem) for problem in error.problems]
    return JSONResponse(value, getattr(error, "status", 400))


def _with_line(problem: str) -> tuple[int | None, str]:
    """A problem with the line that it names at its beginning ('line 3: ...')."""
    head, colon, rest = problem.partition(": ")
    word, _, number = head.partition(" ")
    if colon and word == "line" and number.isdecimal() and len(number) < 9:
        return int(number), rest
    return None, problem
