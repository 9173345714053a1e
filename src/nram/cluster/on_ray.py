"""The trials of a study on a Ray cluster, by Ray Tune. Each is the same process as on one machine.

Ray decides where trials run, and starts them again when a worker or a node is lost. What a trial has reached is in its
own files, on shared storage. So Tune keeps no checkpoints, and its own state is never needed again.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar

from ray import tune
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, TrialScheduler

from nram.cluster.connection import connected, gpus_of_cluster, require_room
from nram.cluster.gpus import Gpus
from nram.cluster.plan import Trial, trial_from
from nram.cluster.pool import Event
from nram.cluster.process import Ended, TrialRunner, progress_of
from nram.cluster.spec import EarlyStopping, Resources, Spec
from nram.cluster.storage import Storage
from nram.cluster.study import Study
from nram.cluster.trial import Place, Progress, training_outcome
from nram.errors import NramError
from nram.files import write_atomically

REPORT_SECONDS = 1.0  # between two reports of a trial
SNAPSHOT_SECONDS = 20.0  # between two snapshots of a trial, where there is a storage
MOST_FAILED = 10  # snapshots in a row, before the trial fails
SAVE_SECONDS = 60.0  # that a trial has for saving when it is stopped
LOOK = 0.2
ROOM_SECONDS = 10.0  # between two looks at whether a machine can run a trial
GIB = 1 << 30
EARLY = "stopped early"


@contextlib.contextmanager
def cluster_at(address: str, note: Callable[[str], None]) -> Iterator[Gpus]:
    """Join the cluster at this address for a study, and say which GPUs it has. It is left in the end."""
    note("starting Ray" if address == "local" else f"joining the Ray cluster at {address}")
    with connected(address, "sweep"):
        yield gpus_of_cluster()


def require_resources(resources: Resources) -> None:
    """Refuse a study whose trials no machine of the cluster can run."""
    wanted = {"CPU": resources.cores, "GPU": resources.gpus or 0.0, "memory": (resources.memory or 0) * GIB}
    require_room(wanted, "resources: a trial")


class Room:
    """Says when no machine of the cluster can run a trial any more, and when one can again."""

    def __init__(self, resources: Resources, note: Callable[[str], None]):
        self.resources, self.note = resources, note
        self.there, self.asked_at = True, time.monotonic()
        self.answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None

    def look(self) -> None:
        """Say what has changed, and ask again if it is time. Nothing waits for the answer."""
        with contextlib.suppress(queue.Empty):
            there = self.answers.get_nowait()
            if there and not self.there:
                self.note("a machine of the cluster can run a trial again: the study goes on")
            elif self.there and not there:
                self.note(
                    "no machine of the cluster can run a trial now: waiting for one (Ctrl-C saves and stops; --resume "
                    "goes on)"
                )
            self.there = there
        if time.monotonic() - self.asked_at >= ROOM_SECONDS and not (self.thread and self.thread.is_alive()):
            self.asked_at = time.monotonic()
            # A cluster whose head is lost does not answer, and Ctrl-C is to work meanwhile.
            self.thread = threading.Thread(target=self._ask, daemon=True)
            self.thread.start()

    def _ask(self) -> None:
        with contextlib.suppress(Exception):  # no answer: Ray itself says why
            self.answers.put(_has_room(self.resources))


def _has_room(resources: Resources) -> bool:
    try:
        require_resources(resources)
    except NramError:
        return False
    return True


def run_on_ray(
    trials: Sequence[Trial], spec: Spec, study: Study, stopping: Callable[[], bool], note: Callable[[str], None]
) -> Generator[Event, None, None]:
    """Run the trials on the cluster that this process has joined, and tell what they do."""
    # Ray and Tune print much, also on standard output, where the result is to stand alone. What matters is noted here.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        waiting, room = list(trials), Room(spec.resources, note)
        while waiting and not stopping():
            ended: set[str] = set()
            for event in _round(waiting, spec, study, stopping, room):
                if event.trial is not None and event.ended is not None:
                    ended.add(event.trial.name)
                yield event
            if not ended and not stopping():
                raise NramError(
                    "the cluster ended no trial: look at its state with 'ray status', then go on with --resume"
                )
            waiting = [trial for trial in waiting if trial.name not in ended]
            if waiting and not stopping():
                note(f"{len(waiting)} trials were lost with the cluster's machines: they go on")


def _round(
    trials: Sequence[Trial], spec: Spec, study: Study, stopping: Callable[[], bool], room: Room
) -> Generator[Event, None, None]:
    """Run the trials once by Ray Tune."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    closing = threading.Event()
    early: set[str] = set()

    def asked() -> bool:
        return closing.is_set() or stopping()

    put, wanted = _Kept(events.put), _Kept(asked)
    scheduler = FIFOScheduler() if spec.early_stopping is None else _ByTask(spec.early_stopping, _Kept(early.add))
    config = {"study": str(study.path.resolve()), "storage": _location(spec, study)}
    space = {**config, "trial": tune.grid_search([json.dumps(asdict(trial)) for trial in trials])}
    resources: dict[str, float] = {"cpu": spec.resources.cores}
    resources |= {"gpu": spec.resources.gpus} if spec.resources.gpus else {}
    resources |= {"memory": spec.resources.memory * GIB} if spec.resources.memory else {}
    own = tempfile.mkdtemp(prefix="nram-tune-")
    errors: list[BaseException] = []

    def fit() -> None:
        try:
            tune.Tuner(
                tune.with_resources(_StudyTrial, resources),
                param_space=space,
                tune_config=tune.TuneConfig(metric="right", mode="max", scheduler=scheduler, reuse_actors=True),
                run_config=tune.RunConfig(
                    name="study",
                    storage_path=own,
                    verbose=0,
                    stop=_Stopper(wanted),
                    callbacks=[_Listener(put, _Kept(early.__contains__), wanted)],
                    failure_config=tune.FailureConfig(max_failures=-1),
                    checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                ),
            ).fit()
        except BaseException as error:  # told by the thread that reads the events
            errors.append(error)

    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # the other prints on standard output
    os.environ.setdefault("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1")
    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    try:
        while thread.is_alive() or not events.empty():
            try:
                event = events.get(timeout=LOOK)
            except queue.Empty:
                room.look()
                yield Event(None)
                continue
            yield _settled(event, spec, study)
        if errors and not asked():
            words = " ".join(str(errors[0]).split())[:300]
            raise NramError(f"the Ray cluster failed: {type(errors[0]).__name__}: {words}; go on with --resume")
    finally:
        closing.set()
        thread.join(SAVE_SECONDS)
        shutil.rmtree(own, ignore_errors=True)
        _Kept.objects.clear()


def _settled(event: Event, spec: Spec, study: Study) -> Event:
    """The event, after what the trial came to is in the folder of the study."""
    trial, ended = event.trial, event.ended
    if trial is None or ended is None:
        return event
    place = study.place
    try:
        location = _location(spec, study)
        if location is not None and ended.kind in ("ended", "stopped"):
            storage, end = Storage(location), time.monotonic() + SAVE_SECONDS
            storage.restore_log(place, trial.name)
            storage.restore(place, trial.name)
            # A trial that ASHA stops is saved meanwhile, and its last snapshot has a mark.
            while ended.message == EARLY and not place.paused(trial.name).is_file() and time.monotonic() < end:
                time.sleep(REPORT_SECONDS)
                storage.restore(place, trial.name)
            place.paused(trial.name).unlink(missing_ok=True)
        elif location is not None:  # it failed: its message matters more than a log that cannot be had
            with contextlib.suppress(NramError):
                Storage(location).restore_log(place, trial.name)
        if ended.kind == "stopped" and ended.message == EARLY:
            # Its process ends now. It may have ended by itself in this moment: then that counts.
            with place.held(trial.name, SAVE_SECONDS):
                if place.read_outcome(trial.name) is None:
                    place.write_outcome(training_outcome(trial, place, "stopped early"))
            return Event(trial, ended=Ended("ended"))
    except (NramError, OSError) as error:  # such as a full disk here: the other trials go on
        return Event(trial, ended=Ended("failed", _words_of(error)))
    return event


def _location(spec: Spec, study: Study) -> str | None:
    """Where the trials are kept, away from those of other studies; None: in the folder of the study."""
    return None if spec.storage is None else f"{spec.storage.rstrip('/')}/{study.path.name}-{study.record.id}"


class _Kept:
    """Tune pickles and copies what it is given. An object of this process stays one: only its key is copied."""

    objects: ClassVar[dict[str, Any]] = {}

    def __init__(self, value: Any):
        self.key = token_hex(8)
        self.objects[self.key] = value

    @property
    def value(self) -> Any:
        return self.objects[self.key]


class _Stopper(tune.Stopper):
    """Ends all trials when the caller wants it."""

    def __init__(self, asked: _Kept):
        self.asked = asked

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return self.asked.value()


class _Listener(tune.Callback):
    """Passes on what Tune says."""

    def __init__(self, events: _Kept, early: _Kept, asked: _Kept):
        self.events, self.early, self.asked = events, early, asked

    def _trial(self, trial: Any) -> Trial:
        return trial_from(json.loads(trial.config["trial"]), "the trial")

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any):
        if result.get("words"):
            self.events.value(Event(self._trial(trial), Progress(result["words"], result["seconds"], result["right"])))

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any):
        result = trial.last_result or {}
        if result.get("kind"):
            ended = Ended(result["kind"], result.get("message", ""))
        elif self.early.value(trial.trial_id):
            ended = Ended("stopped", EARLY)
        elif self.asked.value():
            ended = Ended("stopped")
        else:  # nobody knows why: the next round runs it again
            return
        self.events.value(Event(self._trial(trial), ended=ended))


# ---- early stopping


class _ByTask(FIFOScheduler):
    """ASHA for each task alone: what is much for one task may be little for another."""

    def __init__(self, early: EarlyStopping, stopped: _Kept):
        super().__init__()
        self.early, self.stopped = early, stopped
        self.schedulers: dict[str, ASHAScheduler] = {}

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        return True

    def _of(self, trial: Any) -> ASHAScheduler:
        subject = json.loads(trial.config["trial"])["subject"]
        if subject not in self.schedulers:
            self.schedulers[subject] = ASHAScheduler(
                time_attr="seconds",
                metric="right",
                mode="max",
                grace_period=round(self.early.grace),
                reduction_factor=self.early.reduction,
                max_t=10**12,  # the budget ends a trial, not ASHA
            )
        return self.schedulers[subject]

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        self._of(trial).on_trial_add(tune_controller, trial)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        decision = self._of(trial).on_trial_result(tune_controller, trial, result)
        if decision == TrialScheduler.STOP and not result.get("kind"):
            self.stopped.value(trial.trial_id)
        return decision

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        self._of(trial).on_trial_complete(tune_controller, trial, result)

    def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
        self._of(trial).on_trial_remove(tune_controller, trial)


# ---- on a worker


class _StudyTrial(tune.Trainable):
    """A trial on a worker of the cluster. Each step waits for news of its process."""

    def setup(self, config: dict[str, Any]) -> None:
        self.study_trial = trial_from(json.loads(config["trial"]), "the trial")
        self.runner: TrialRunner | None = None
        self.storage: Storage | None = None
        self.own: str | None = None
        self.tried_at, self.saved = time.monotonic(), None
        self.failed_saves = 0
        self.ended: Ended | None = None
        try:
            self._begin(config)
        except Exception as error:  # told by the first step: an error here would be tried for ever
            self.ended = Ended("failed", _words_of(error))

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Run another trial: a worker that is there begins seconds sooner than a new one."""
        self.cleanup()
        self.setup(new_config)
        return True

    def _begin(self, config: dict[str, Any]) -> None:
        study = Path(config["study"])
        if config["storage"] is not None:
            self.storage = Storage(config["storage"])
            self.own = os.path.realpath(tempfile.mkdtemp(prefix="nram-trial-"))
            study = Path(self.own)
            (study / "trials").mkdir()
            self.storage.restore(Place(study), self.study_trial.name)
            self.storage.restore_log(Place(study), self.study_trial.name)
            if (mark := Place(study).paused(self.study_trial.name)).is_file():
                mark.unlink()
                self.storage.save(Place(study), self.study_trial.name)  # an early stop waits for a mark of its own
        elif not (study / "study.json").is_file():
            raise NramError(
                f"{study} is not there on {platform.node()}: put the study on storage that all machines share, or name "
                "one in the specification, as storage = 's3://bucket/folder'"
            )
        self.place = Place(study)
        environment = {} if self.study_trial.gpus else {"JAX_PLATFORMS": "cpu"}
        self.runner = TrialRunner(self.study_trial, self.place, environment)

    def step(self) -> dict[str, Any]:
        try:
            settled = self._work()
        except Exception as error:  # an error here would be tried for ever too
            settled = True
            if self.ended is None or self.ended.kind != "failed":
                self.ended = Ended("failed", _words_of(error))
        progress = self.runner.progress if self.runner is not None else None
        result: dict[str, Any] = {"right": 0.0, "seconds": 0.0, "words": "", "kind": "", "message": ""}
        result |= asdict(progress) if progress is not None else {}
        if self.ended is not None and settled:
            result |= {"kind": self.ended.kind, "message": self._lasting(self.ended.message), "done": True}
        return result

    def _work(self) -> bool:
        """Wait for news of the process. Returns whether its state is kept as far as it has to be now."""
        end = time.monotonic() + REPORT_SECONDS
        if self.ended is not None and self.runner is not None:  # only its last snapshot is missing
            time.sleep(REPORT_SECONDS)
        while self.ended is None and time.monotonic() < end:
            assert self.runner is not None
            self.ended = self.runner.wait(LOOK)
        return self._kept(last=self.ended is not None)

    def _lasting(self, message: str) -> str:
        """The message. The folder here is removed: what counts is where it came from."""
        if self.own is None or self.storage is None or self.own not in message:
            return message
        kept = f"{self.storage.location}/{self.study_trial.name}"
        return f"{message.replace(f'{self.own}/', '')} (its snapshots are in {kept})"

    def _kept(self, last: bool) -> bool:
        """Keep the state of the trial in the storage, if it is time. A write that failed is tried again later.

        Returns whether nothing has to be tried again.
        """
        if self.storage is None or self.runner is None:
            return True
        due = time.monotonic() - self.tried_at >= SNAPSHOT_SECONDS
        now = progress_of(self.study_trial, self.place)
        if not (last and self.failed_saves == 0) and not (due and (last or now != self.saved)):
            return self.failed_saves == 0
        self.tried_at = time.monotonic()
        try:
            self._save(self.storage)
        except NramError as error:
            self.failed_saves += 1
            if self.failed_saves >= MOST_FAILED:
                raise
            with contextlib.suppress(OSError), open(self.place.log(self.study_trial.name), "a") as log:
                log.write(f"{error}; it is tried again\n")
            return False
        self.saved, self.failed_saves = now, 0
        return True

    def _save(self, storage: Storage) -> None:
        storage.save_log(self.place, self.study_trial.name)
        storage.save(self.place, self.study_trial.name)

    def cleanup(self) -> None:
        """Tune ends the trial: it saves its work, if it still runs."""
        if self.runner is not None:
            self.runner.stop()
            end = time.monotonic() + SAVE_SECONDS
            while self.runner.wait(LOOK) is None and time.monotonic() < end:
                pass
            self.runner.kill()
            with contextlib.suppress(NramError):
                if self.storage is not None:
                    write_atomically(self.place.paused(self.study_trial.name), b"")
                    self._save(self.storage)
        if self.own is not None:
            shutil.rmtree(self.own, ignore_errors=True)


def _words_of(error: Exception) -> str:
    """What to say of an error. Those of nram say what to do; of others the kind says most."""
    return str(error) if isinstance(error, NramError) else f"{type(error).__name__}: {error}"
