"""Worker processes that try inputs one by one, and the verdicts, findings and summary that come of it.

A worker that crashes, hangs or is killed ends no more than its input: a new worker goes on with the next one.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import platform
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from random import Random
from typing import Any

from fuzz.kinds import Files, Kind
from nram.errors import NramError

CPU_SECONDS = 10.0  # an input that takes more is a finding
WALL_SECONDS = 120.0  # a worker that is silent for so long is killed
START_SECONDS = 600.0  # the same while it starts, imports and compiles
READY = "ready"  # what a worker says when it has started
MEMORY = 1 << 30  # an input that takes more bytes is a finding
ADDRESS_SPACE = 6 << 30  # an input cannot take more: the machine stays usable
MESSAGE = 20_000  # characters; a longer refusal helps nobody
CHUNK = 50  # inputs that a worker gets at once
FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # for inputs; in memory they are quicker
KEPT = 3  # inputs of each finding that are saved
VERDICTS = ("accepted", "refused", "tracebacks", "crashes", "over_limits")
FINDINGS = VERDICTS[2:]


@dataclass(frozen=True)
class Verdict:
    """What came of an input."""

    index: int
    verdict: str
    what: str = ""
    """Of a finding: the kind of error and the place in the code. Equal findings are counted together."""
    details: str = ""


# ---- in a worker


def attempt(kind: Kind, seed: int, index: int, files: Files | None = None) -> Verdict:
    """Write an input into a folder of its own and let nram use it."""
    valid = files is None and index < len(kind.valid())
    files = kind.input(seed, index) if files is None else files
    before_seconds, before_memory = time.process_time(), _peak_memory()
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder, contextlib.chdir(folder):
        write(Path(folder), files)
        verdict, what, details = _tried(kind, Path(folder), Random(f"use {kind.name} {seed} {index}"))
    seconds, memory = time.process_time() - before_seconds, _peak_memory() - before_memory
    if verdict == "refused" and valid:
        verdict, what = "tracebacks", f"a valid input is refused: {details[:200]}"
    if verdict in VERDICTS[:2] and seconds > CPU_SECONDS:
        verdict, what = "over_limits", f"more than {CPU_SECONDS:.0f} seconds"
    if verdict in VERDICTS[:2] and memory > MEMORY:
        verdict, what = "over_limits", f"more than {MEMORY >> 20} MiB"
    return Verdict(index, verdict, what, details)


def write(folder: Path, files: Files) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_bytes(content)


def _tried(kind: Kind, folder: Path, rng: Random) -> tuple[str, str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Old names of settings still work, with this warning.
            warnings.filterwarnings("ignore", ".* goes in nram ", DeprecationWarning)
            kind.use(folder, rng)
        return "accepted", "", ""
    except NramError as error:
        message = str(error)
        if not message.strip() or len(message) > MESSAGE:
            return "tracebacks", f"a refusal that is empty or has more than {MESSAGE} characters", message[:2000]
        if not all(character.isprintable() or character == "\n" for character in message):
            return "tracebacks", "a refusal with control characters", repr(message[:2000])
        return "refused", "", message
    except ModuleNotFoundError as error:
        if str(error.name).startswith(("nram", "fuzz")):
            return "tracebacks", _place_of(error), ""
        raise  # a package that this machine does not have
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return "tracebacks", _place_of(error), "".join(traceback.format_exception(error))[-5000:]


def _place_of(error: BaseException) -> str:
    """The kind of an error, and the last line of nram, or of this package, that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if f"{os.sep}nram{os.sep}" in frame.filename] or frames
    last = inside[-1]
    name = last.filename.rpartition(f"{os.sep}nram{os.sep}")[2] if inside is not frames else Path(last.filename).name
    said = f" ({error})" if isinstance(error, AssertionError) and last.name.startswith(("_use", "_check")) else ""
    return f"{type(error).__name__} in {name}, {last.name}{said[:100]}"


def _peak_memory() -> int:
    # Not getrusage: it begins with the memory of the process that started this one.
    words = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()
    return int(words[0]) * 1024


def work(pipe: Any, errors: str) -> None:
    """The loop of a worker: it is sent (kind, seed, indices) and answers with a verdict for each index."""
    descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process
    faulthandler.enable()
    warm: set[str] = set()
    while (job := pipe.recv()) is not None:
        kind, seed, indices = job
        try:
            if kind.name not in warm:  # import and compile, so that the first input is not charged with it
                attempt(kind, seed, 0)
                _limit_address_space()
                warm.add(kind.name)
            pipe.send(READY)
            for index in indices:
                pipe.send(attempt(kind, seed, index))
        except ModuleNotFoundError as error:
            pipe.send(error.name)


def _limit_address_space() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


# ---- in the main process


@dataclass
class Tally:
    """What came of the inputs of one kind so far."""

    started: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    missing: str = ""
    """A package that this kind needs and this machine does not have."""
    found: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    """The numbers of the inputs of each finding."""
    details: dict[tuple[str, str], str] = field(default_factory=dict)


@dataclass
class Fuzzing:
    """A run over some kinds: at least so many inputs of each, and more until the time is over."""

    inputs: Mapping[Kind, int]
    seed: int = 0
    seconds: float = 0.0
    workers: int = 1
    save: Path | None = None
    """Where the inputs of findings are saved."""
    wall_seconds: float = WALL_SECONDS
    say: Callable[[str], None] = print
    stopped: bool = False
    """By Ctrl-C: the workers finish what they have, and the summary tells of what was tried."""

    def run(self) -> dict[str, Any]:
        """Try all inputs. Returns the summary."""
        self.tallies = {kind: Tally() for kind in self.inputs}
        self.lock, self.began = threading.Lock(), time.monotonic()
        with ThreadPoolExecutor(self.workers) as executor:
            try:
                for served in [executor.submit(self._serve) for _ in range(self.workers)]:
                    served.result()
            except KeyboardInterrupt:
                self.stopped = True
        return self.summary()

    def summary(self) -> dict[str, Any]:
        kinds, findings = {}, []
        for kind, tally in self.tallies.items():
            counts = {verdict: tally.counts[verdict] for verdict in VERDICTS}
            kinds[kind.name] = {"inputs": sum(counts.values()), **counts, "seconds": round(tally.seconds, 1)}
            if tally.missing:
                kinds[kind.name]["missing"] = tally.missing
            for (verdict, what), indices in tally.found.items():
                entry = {
                    "kind": kind.name,
                    "verdict": verdict,
                    "what": what,
                    "count": len(indices),
                    "first": min(indices),
                }
                findings.append({**entry, "details": tally.details[verdict, what]})
        return {
            "seed": self.seed,
            "seconds": round(time.monotonic() - self.began, 1),
            "workers": self.workers,
            "versions": versions(),
            "kinds": kinds,
            "findings": findings,
        }

    def _next(self) -> tuple[Kind, range] | None:
        """The next inputs to try: first what was asked for, then of the kind that has had the least time."""
        with self.lock:
            if self.stopped:
                return None
            able = {kind: tally for kind, tally in self.tallies.items() if not tally.missing}
            short = [kind for kind in able if able[kind].started < self.inputs[kind]]
            if short:
                kind = min(short, key=lambda one: able[one].started / self.inputs[one])
                count = min(CHUNK, self.inputs[kind] - able[kind].started)
            elif able and time.monotonic() - self.began < self.seconds:
                kind, count = min(able, key=lambda one: able[one].seconds), CHUNK
            else:
                return None
            first = able[kind].started
            able[kind].started += count
            if (first + count) // 1000 > first // 1000:
                self.say(f"{kind.name}: {first + count:,} inputs")
            return kind, range(first, first + count)

    def _serve(self) -> None:
        """Keep one worker process busy, and replace it when it dies."""
        with contextlib.ExitStack() as stack:
            errors = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "stderr"
            worker = _Worker(errors, self.wall_seconds)
            stack.callback(lambda: worker.stop())
            while (job := self._next()) is not None:
                kind, indices = job
                while indices:
                    began = time.monotonic()
                    left, verdict = worker.try_all(kind, self.seed, indices, partial(self._add, kind))
                    with self.lock:
                        self.tallies[kind].seconds += time.monotonic() - began
                    if verdict is not None:
                        self._add(kind, verdict)
                        worker.stop()
                        worker = _Worker(errors, self.wall_seconds)
                    indices = left

    def _add(self, kind: Kind, verdict: Verdict | str) -> None:
        with self.lock:
            tally = self.tallies[kind]
            if isinstance(verdict, str):
                tally.missing = verdict
                return
            tally.counts[verdict.verdict] += 1
            if verdict.verdict not in FINDINGS:
                return
            key = verdict.verdict, verdict.what
            tally.found[key].append(verdict.index)
            tally.details.setdefault(key, verdict.details)
            count = len(tally.found[key])
        if count == 1:
            self.say(f"{kind.name} {verdict.index}: {verdict.verdict}: {verdict.what}")
        if self.save is not None and count <= KEPT:
            folder = self.save / f"{kind.name}-{self.seed}-{verdict.index}"
            shutil.rmtree(folder, ignore_errors=True)
            write(folder, kind.input(self.seed, verdict.index))
            (folder / "finding.txt").write_text(f"{verdict.verdict}: {verdict.what}\n\n{verdict.details}\n")


class _Worker:
    """A worker process and the pipe to it."""

    def __init__(self, errors: Path, wall_seconds: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.errors, self.wall_seconds = errors, wall_seconds
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, str(errors)), daemon=True)
        self.process.start()
        other.close()

    def try_all(self, kind: Kind, seed: int, indices: range, add: Any) -> tuple[range, Verdict | None]:
        """Try these inputs. Returns those that are left, and the verdict on the one at which the worker died, if so."""
        self.pipe.send((kind, seed, indices))
        for count, index in enumerate((indices[0], *indices)):
            left, seconds = indices[max(count, 1) :], self.wall_seconds if count else START_SECONDS
            try:
                if not self.pipe.poll(seconds):
                    return left, Verdict(index, "over_limits", f"no answer within {seconds:.0f} seconds")
                verdict = self.pipe.recv()
            except (EOFError, ConnectionError):
                self.process.join(10)
                said = self.errors.read_text(errors="replace")[-5000:]
                return left, Verdict(index, "crashes", f"exit status {self.process.exitcode}", said)
            if verdict == READY:
                continue
            add(verdict)
            if isinstance(verdict, str):
                return range(0), None
        return range(0), None

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def versions() -> dict[str, str]:
    """Of everything whose code is fuzzed."""
    names = ("nram", "numpy", "jax", "equinox", "llvmlite", "numba", "safetensors")
    found = {"python": platform.python_version()}
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def to_table(summary: Mapping[str, Any]) -> str:
    """The summary as a Markdown table, as in docs/security.md."""
    lines = ["| files | inputs | accepted | refused | tracebacks | crashes | over the limits |"]
    lines.append("| --- | --: | --: | --: | --: | --: | --: |")
    rows = summary["kinds"]
    total = {key: sum(row[key] for row in rows.values()) for key in ("inputs", *VERDICTS)}
    for name, row in (*rows.items(), ("all", total)):
        lines.append(f"| {name} | " + " | ".join(f"{row[key]:,}" for key in ("inputs", *VERDICTS)) + " |")
    return "\n".join(lines)


if sys.platform != "linux":  # /proc is missing
    raise ImportError("fuzzing needs Linux")
