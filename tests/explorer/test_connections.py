"""Connections that never finish what they began give their places back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from nram.explorer import connections
from nram.explorer.server import listen, serve
from nram.explorer.settings import Settings

REQUEST = b"GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"


@pytest.fixture
def port(monkeypatch) -> Iterator[int]:
    """A server that waits 0.3 s for a header."""
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    settings, listening = listen(Settings(port=0))
    ready, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=serve, args=(settings, listening, ready.set, ended.is_set))
    thread.start()
    assert ready.wait(20)
    yield settings.port
    ended.set()
    thread.join(20)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: 127.0"], ids=["nothing", "half a header"])
def test_a_header_that_never_ends_loses_its_connection(port, begun):
    with connected(port) as client:
        client.sendall(begun)
        assert client.recv(100) == b""


def test_the_header_of_a_second_request_has_no_more_time(port):
    with connected(port) as client:
        client.sendall(REQUEST % port)
        assert client.recv(20).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET")
        while client.recv(10_000):
            pass  # the rest of the answer, and the end


def test_a_request_in_two_parts_is_answered(port):
    whole = REQUEST % port
    with connected(port) as client:
        client.sendall(whole[:20])
        client.sendall(whole[20:])
        assert client.recv(20).startswith(b"HTTP/1.1 200")
