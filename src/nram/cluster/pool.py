"""Trials side by side on this machine, each in a process of its own. The standard library is enough."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from nram.cluster.gpus import gpu_names
from nram.cluster.plan import Trial
from nram.cluster.process import Ended, run_in_process
from nram.cluster.spec import Resources
from nram.cluster.trial import Place, Progress
from nram.display import counted
from nram.errors import UsageError
from nram.progress import note
from nram.runtime import cpu_cores

SAY = "nvidia-smi, CUDA_VISIBLE_DEVICES and JAX_PLATFORMS say which"
LOOK = 0.2  # seconds between two looks at what the caller wants


@dataclass(frozen=True)
class Event:
    """Something that a trial did. Without `trial`, a moment has passed."""

    trial: Trial | None
    progress: Progress | None = None
    ended: Ended | None = None


def slots_of(resources: Resources, workers: int | None = None, begun: bool = False) -> list[dict[str, str]]:
    """The environments of the trials that run side by side: as many as cores and GPUs allow, or as asked for.

    `begun`: the study goes on, and its resources cannot be changed any more.
    """
    slots, cores = _slots(resources, workers, begun), cpu_cores()
    if (needed := len(slots) * resources.cores) > cores:
        note(
            f"--workers {workers}: {counted(len(slots), 'trial')} side by side want {needed} cores, and this machine "
            f"has {cores}: trials that share cores are slower, and may not end within their budget"
        )
    return slots


def _slots(resources: Resources, workers: int | None, begun: bool) -> list[dict[str, str]]:
    cores = cpu_cores()
    if resources.cores > cores:
        raise UsageError(f"resources.cores is {resources.cores}, and this machine has {cores}: give fewer")
    most = cores // resources.cores
    if not resources.gpus:
        return [{"JAX_PLATFORMS": "cpu"}] * (workers or most)
    gpus = gpu_names()
    if not gpus or resources.gpus > len(gpus):
        has = f"this machine has {len(gpus)}" if gpus else f"this machine has none that may be used ({SAY})"
        if begun:
            raise UsageError(
                f"the study began on GPUs (resources.gpus is {resources.gpus:g}), and {has}: go on with it where there "
                "are enough, or begin another study with '[resources] gpus = 0' and another --out"
            )
        raise UsageError(f"resources.gpus is {resources.gpus:g}, and {has}: give fewer, or 0 to train on cores")
    if resources.gpus <= 1:
        # One trial of every GPU first, so that a small study has them all.
        names = gpus * int(1 / resources.gpus + 1e-9)
    else:
        size = int(resources.gpus)
        names = [",".join(gpus[start : start + size]) for start in range(0, len(gpus) - size + 1, size)]
    names = names[: workers or most]
    return [{"CUDA_VISIBLE_DEVICES": name} for name in names]


def run_pool(
    trials: Sequence[Trial], place: Place, slots: Sequence[Mapping[str, str]], stopping: Callable[[], bool]
) -> Generator[Event, None, None]:
    """Run the trials, as many at once as there are slots, and tell what they do.

    When `stopping` becomes true, those that run save their work and end, and no others begin. The same happens when the
    caller closes the generator.
    """
    waiting: queue.SimpleQueue[Trial] = queue.SimpleQueue()
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    closing = threading.Event()
    for trial in trials:
        waiting.put(trial)

    def asked() -> bool:
        return closing.is_set() or stopping()

    def work(environment: Mapping[str, str]) -> None:
        while not asked():
            try:
                trial = waiting.get_nowait()
            except queue.Empty:
                return

            def told(progress: Progress, trial: Trial = trial) -> None:
                events.put(Event(trial, progress))

            try:
                ended = run_in_process(trial, place, told, asked, environment)
            except Exception as error:  # such as no memory for another process
                ended = Ended("failed", f"{type(error).__name__}: {error}")
            events.put(Event(trial, ended=ended))

    threads = [threading.Thread(target=work, args=(slot,), daemon=True) for slot in slots[: len(trials)]]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads) or not events.empty():
            try:
                yield events.get(timeout=LOOK)
            except queue.Empty:
                yield Event(None)
    finally:
        closing.set()
        for thread in threads:
            thread.join()
