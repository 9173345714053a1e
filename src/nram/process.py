"""A process of the command line: its standard streams, and Ctrl-C, SIGTERM and SIGHUP.

A thread waits for signals. Python itself runs signal handlers only between two instructions of the main thread, and
compiling or native code may take minutes. No exception is raised where a signal arrives: an import would show it as a
traceback, and a callback would lose it. Instead a job is asked to save its work and stop. A second signal, or a signal
while no job runs, ends the process at once. Nothing is lost then, because files are written atomically.

This module imports little, so that a process is ready within milliseconds.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAME_SECONDS = 0.5
"""A signal so soon after the first is the same request: a wrapper passes on what the terminal has sent already."""


class _Process:
    """The state that the main thread and the thread that waits for signals share."""

    name = "nram"
    """In messages."""
    prepared = False
    job = False
    """A job runs that can save its work."""
    how = ""
    """The job stops, in words."""
    asked_at: float | None = None
    """When the job was asked to stop."""
    output_error: OSError | None = None


def prepare(name: str | None = None) -> None:
    """Make this process ready: standard streams are open, and signals are noticed. A second call changes the name."""
    _Process.name = name or _Process.name
    if _Process.prepared:
        return
    _Process.prepared = True
    _open_streams()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_wait_for_signals, args=(reader,), daemon=True).start()
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored for nohup, or in the background of a script
            signal.signal(number, lambda number, frame: None)  # the thread does the work
            # Registered first, it is called last: the work is done, and only Python itself has still to end.
            atexit.register(signal.signal, number, signal.SIG_IGN)


# ---- standard streams


def _open_streams() -> None:
    """Open closed streams on /dev/null: the next file that is opened would get the number of a closed one."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115 (stays open)
    sys.stdout, sys.stderr = _stream(sys.stdout, 1), _stream(sys.stderr, 2)


def _stream(before: Any, number: int) -> io.TextIOWrapper:
    """Standard output or standard error as Python opens it, but over a `_Patient` file."""
    buffer = io.BufferedWriter(_Patient(number, "w", closefd=False))
    encoding, at_once = "utf-8", number == 2
    if before is not None:
        encoding, at_once = before.encoding, at_once or before.line_buffering or before.write_through
    # Names of files need not be text.
    return io.TextIOWrapper(buffer, encoding, "backslashreplace", line_buffering=at_once)


class _Patient(io.FileIO):
    """A stream that never fails. Work goes on, and is saved, although nobody reads what it prints.

    A reader that has gone away is no error. A full disk is one for standard output: `output_error` tells it later.
    """

    def write(self, data) -> int | None:
        try:
            while (written := super().write(data)) is None:  # a pipe that does not block is full: wait for its reader
                select.select([], [self], [])
            return written
        except OSError as error:
            if self.fileno() == 1 and not isinstance(error, BrokenPipeError):
                _Process.output_error = error
            return len(data)


def output_error() -> OSError | None:
    """Why something that was printed on standard output could not be written; None if everything was."""
    return _Process.output_error


# ---- signals


class interruptible:
    """A context in which a job runs. Entering it returns a function that says whether the job should save and stop.

    `how` says in words how it stops, for the user who has asked for it.
    """

    def __init__(self, how: str = "stopping after this step, then saving"):
        self.how = how

    def __enter__(self) -> Callable[[], bool]:
        _Process.job, _Process.how = True, self.how
        return lambda: _Process.asked_at is not None

    def __exit__(self, *exception) -> None:
        _Process.job = False


def _wait_for_signals(reader: int) -> None:
    while True:
        for number in os.read(reader, 100):
            if number in SIGNALS:
                _notice()


def _notice() -> None:
    """Ask the job to stop, or end the process."""
    if not _Process.job or (_Process.asked_at and time.monotonic() - _Process.asked_at > SAME_SECONDS):
        _end()
    if _Process.asked_at is None:
        _Process.asked_at = time.monotonic()
        text = f"{_Process.name}: {_Process.how}; Ctrl-C again stops at once"
        # In a thread of its own: a pipe that nobody reads must not hold up the next signal.
        threading.Thread(target=_say, args=(text,), daemon=True).start()


def _say(text: str) -> None:
    clear = "\r\033[K" if sys.stderr.isatty() else ""
    print(f"{clear}{text}", file=sys.stderr, flush=True)


def _end() -> None:
    """End the process, whatever its other threads do."""
    with contextlib.suppress(OSError):
        show_cursor = "\033[?25h" if os.isatty(2) else ""  # a live panel hides it
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"{show_cursor}\n{_Process.name}: interrupted\n".encode())
    os._exit(1)
