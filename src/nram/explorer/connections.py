"""Connections to the explorer: a request whose header does not arrive in time loses its connection.

Such a connection takes the place of another one. Those that wait for a next request are closed by uvicorn itself, and
bodies have a limit of their own (`answering.py`).
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0  # from the first byte of a request, or the beginning of the connection, to the end of the header


class Connection(H11Protocol):
    """A connection of uvicorn that waits for a header only so long."""

    waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_header():
            self._wait()
        else:
            self._end_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        super().connection_lost(exc)

    def _is_in_header(self) -> bool:
        """Whether no request is being answered: what has arrived, if anything, is a part of a header."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        """Begin to wait. More bytes of the same header give it no more time."""
        if self.waiting is None:
            self.waiting = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _end_waiting(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def _give_up(self) -> None:
        self.waiting = None
        if self._is_in_header():
            self.transport.close()
