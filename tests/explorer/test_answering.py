"""Streams and slow work are bounded, and their places are given back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from nram.errors import NramError
from nram.explorer import answering
from nram.explorer.answering import Refused, Turns, stream


async def quiet(explorer: Any, parts: Mapping[str, str]) -> AsyncIterator[tuple[str, Any]]:
    yield "begin", {}
    await asyncio.sleep(0)
    yield "end", {}


async def refused(explorer: Any, parts: Mapping[str, str]) -> AsyncIterator[tuple[str, Any]]:
    raise NramError("no such thing")
    yield "never", {}


def asked(events: Any, explorer: Any) -> Any:
    """A request for a stream, as a coroutine that gives the response."""
    request = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(explorer=explorer)), path_params={})
    return stream("/x", events).endpoint(request)


def test_streams_that_come_together_are_counted_at_once(monkeypatch):
    monkeypatch.setattr(answering, "MOST_STREAMS", 3)
    explorer = SimpleNamespace(streams=0)

    async def together() -> list[int]:
        return [answer.status_code for answer in await asyncio.gather(*(asked(quiet, explorer) for _ in range(10)))]

    statuses = asyncio.run(together())
    assert statuses.count(200) == 3 and statuses.count(429) == 7
    assert explorer.streams == 3


def test_the_place_of_a_stream_is_given_back():
    explorer = SimpleNamespace(streams=0)
    sent: list[dict[str, Any]] = []

    async def followed() -> None:
        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            await asyncio.sleep(60)

        answer = await asked(quiet, explorer)
        assert explorer.streams == 1
        await answer({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)

    asyncio.run(followed())
    assert explorer.streams == 0
    body = b"".join(message.get("body", b"") for message in sent)
    assert body == b"event: begin\ndata: {}\n\nevent: end\ndata: {}\n\n"


def test_a_stream_that_is_refused_takes_no_place():
    explorer = SimpleNamespace(streams=0)
    answer = asyncio.run(asked(refused, explorer))
    assert answer.status_code == 400 and b"no such thing" in answer.body
    assert explorer.streams == 0


def test_few_may_wait_for_slow_work():
    turns, inside, done = Turns(2), threading.Event(), threading.Event()

    def slow() -> None:
        with turns.taken():
            inside.set()
            done.wait(20)

    first = threading.Thread(target=slow)
    first.start()
    assert inside.wait(20)
    second = threading.Thread(target=slow)
    second.start()
    while turns._places._value > 0:  # until the second waits
        pass
    with pytest.raises(Refused, match="wait for the same work") as error, turns.taken():
        pass
    assert error.value.status == 429
    done.set()
    first.join()
    second.join()
    with turns.taken():
        pass
