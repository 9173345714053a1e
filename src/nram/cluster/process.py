"""A trial in a process of its own. It ends with the process that started it, and saves its work when it is asked to.

The two talk through pipes: one JSON value that says what to do, then lines with progress, then one with the end. When
the starting process dies, however it dies, its end of the pipe closes, and the trial ends at once. Nothing is lost
then, because files are written atomically.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from nram.cluster.clock import saved_in
from nram.cluster.cores import held_cores
from nram.cluster.plan import Trial, trial_from
from nram.cluster.trial import Place, Progress, TrialStopped, run_trial
from nram.errors import NramError
from nram.messages import on_command_line
from nram.process import interruptible, prepare

MOST_DEATHS = 10  # in a row, without any progress between them
MOST_TAIL = 500  # letters of a log in a message
PATIENCE = 600.0  # seconds that a trial has for saving when it is asked to stop
PAUSE = 0.2  # between two looks at whether to stop
SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""Trials that share a GPU take memory as they need it, not most of it at the start."""

EndKind = Literal["ended", "stopped", "failed", "died"]


@dataclass(frozen=True)
class Ended:
    """How the process of a trial ended."""

    kind: EndKind
    """With what the trial came to, because it was asked to stop, with an error, or killed."""
    message: str = ""


class TrialProcess:
    """A process that runs a trial."""

    def __init__(self, trial: Trial, place: Place, environment: Mapping[str, str] | None = None):
        self.trial, self.place = trial, place
        self.progress: Progress | None = None
        self._end: Ended | None = None
        self._asked_at: float | None = None
        place.log(trial.name).parent.mkdir(parents=True, exist_ok=True)
        with open(place.log(trial.name), "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nram.cluster.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal is for the study, which asks its trials
                env={**os.environ, **SHARED, **(environment or {})},
            )
        assert self.process.stdin is not None
        message = json.dumps({"trial": asdict(trial), "study": str(place.study.resolve())}).encode()
        with contextlib.suppress(OSError):  # it has died already
            self.process.stdin.write(len(message).to_bytes(4, "big") + message)
            self.process.stdin.flush()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(ValueError, TypeError, KeyError):  # a line that was cut off
                value = json.loads(line)
                if "progress" in value:
                    self.progress = Progress(**value["progress"])
                elif "end" in value:
                    self._end = Ended(**value["end"])

    def wait(self, seconds: float) -> Ended | None:
        """How it ended; None if it still runs after so many seconds."""
        try:
            status = self.process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            if self._asked_at is not None and time.monotonic() - self._asked_at > PATIENCE:
                self.kill()
            return None
        self.thread.join()
        self._close()
        if self._end is not None:
            return self._end
        if status < 0:
            return Ended("died", f"killed by signal {-status} ({signal.Signals(-status).name})")
        tail = _tail(self.place.log(self.trial.name))
        return Ended("died" if self._asked_at is None else "stopped", f"ended with status {status}: {tail}")

    def stop(self) -> None:
        """Ask it to save its work and end."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def _close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()


class TrialRunner:
    """Runs a trial in a process of its own. If that ends by a signal that is not ours, it starts again."""

    def __init__(self, trial: Trial, place: Place, environment: Mapping[str, str] | None = None):
        self.trial, self.place, self.environment = trial, place, environment
        self.deaths, self.before = 0, progress_of(trial, place)
        self.asked = False
        self.process = TrialProcess(trial, place, environment)

    @property
    def progress(self) -> Progress | None:
        return self.process.progress

    def wait(self, seconds: float) -> Ended | None:
        """How the trial ended; None if it still runs after so many seconds."""
        ended = self.process.wait(seconds)
        if ended is None or ended.kind not in ("died", "stopped"):
            return ended
        if self.asked:
            return Ended("stopped", ended.message)
        # Here it was killed, or something else than the study asked it to stop.
        now = progress_of(self.trial, self.place)
        self.deaths, self.before = (1, now) if now != self.before else (self.deaths + 1, now)
        if self.deaths >= MOST_DEATHS:
            log = self.place.log(self.trial.name)
            return Ended("failed", f"its process died {self.deaths} times without progress, {ended.message}; see {log}")
        self.process = TrialProcess(self.trial, self.place, self.environment)
        return None

    def stop(self) -> None:
        """Ask the trial to save its work and end."""
        self.asked = True
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()


def run_in_process(
    trial: Trial,
    place: Place,
    told: Callable[[Progress], None],
    stopping: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a trial in a process of its own to its end, or until it was asked to stop."""
    runner, last = TrialRunner(trial, place, environment), None
    try:
        while (ended := runner.wait(PAUSE)) is None:
            if runner.progress is not None and runner.progress is not last:
                last = runner.progress
                told(last)
            if stopping():
                runner.stop()
        return ended
    finally:  # an error here must leave no process behind
        runner.kill()


def progress_of(trial: Trial, place: Place) -> list[tuple[str, int]]:
    """What changes whenever a trial has saved something."""
    found = []
    for path in (*saved_in(place.run(trial.name)), place.outcome(trial.name)):
        with contextlib.suppress(OSError):
            found.append((str(path), path.stat().st_mtime_ns))
    return found


def _tail(log: Path) -> str:
    """The last words of a log."""
    with contextlib.suppress(OSError), open(log, "rb") as file:
        file.seek(max(0, log.stat().st_size - MOST_TAIL))
        return " ".join(file.read(MOST_TAIL).decode(errors="replace").split())
    return "it left no log"


# ---- in the process of the trial


def main() -> int:
    """Read what to do from standard input, do it, and say on standard output how it ended."""
    prepare("nram trial")
    channel = os.dup(1)
    os.dup2(2, 1)  # whatever is printed goes to the log
    size = int.from_bytes(_exactly(4), "big")
    told = json.loads(_exactly(size))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    trial, place = trial_from(told["trial"], "the trial"), Place(Path(told["study"]))
    said_at = 0.0

    def say(value: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            os.write(channel, (json.dumps(value) + "\n").encode())

    def progress(one: Progress) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= PAUSE:
            said_at = time.monotonic()
            say({"progress": asdict(one)})

    with on_command_line(), held_cores(trial.cores), interruptible() as stopping:
        ended = _ended(trial, place, progress, stopping)
    say({"end": asdict(ended)})
    return 0


def _ended(trial: Trial, place: Place, told: Callable[[Progress], None], stopping: Callable[[], bool]) -> Ended:
    try:
        run_trial(trial, place, told, stopping)
        return Ended("ended")
    except TrialStopped as error:
        return Ended("stopped", str(error))
    except NramError as error:
        return Ended("failed", str(error))
    except MemoryError:
        return Ended("failed", "out of memory: use a smaller population, or fewer trials at once")
    except Exception as error:
        traceback.print_exc()
        return Ended("failed", f"{type(error).__name__}: {error}"[:MOST_TAIL])


def _exactly(count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = os.read(0, count - len(found))
        if not part:
            os._exit(1)
        found += part
    return found


def _end_with_parent() -> None:
    """End at once when the process that started this one is gone."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
