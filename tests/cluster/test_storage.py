"""The storage of a study's trials: writes and reads that fail in the middle, and snapshots that others have made."""

from __future__ import annotations

import hashlib
import io
import os
import resource
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nram.cluster.trial import Place
from nram.errors import NramError
from nram.files import is_leftover

if TYPE_CHECKING:
    from nram.cluster.storage import Storage

pytestmark = pytest.mark.skipif(find_spec("pyarrow") is None, reason="PyArrow is missing: pip install 'nram[cluster]'")

LARGE = 200_000
RESTORE = """
import os, signal, sys
from pathlib import Path
from nram.cluster.storage import Storage
from nram.cluster.trial import Place

location, study, left = *sys.argv[1:3], int(sys.argv[3])

def on_event(name, values):
    global left
    writes = name == "open" and values[2] & os.O_CREAT or name == "os.rename"
    if writes and str(values[0]).startswith(study):
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

storage = Storage(location)
sys.addaudithook(on_event)
storage.restore(Place(Path(study)), "x-1")
"""


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as on a disk that is almost full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    from nram.cluster.storage import Storage

    return Storage(str(tmp_path / "kept"))


@pytest.fixture
def place_of(tmp_path: Path) -> Callable[[str], Place]:
    """Makes a place with the folders that a study has."""

    def made(name: str) -> Place:
        place = Place(tmp_path / name)
        place.run("x-1").mkdir(parents=True)
        place.log("x-1").parent.mkdir()
        return place

    return made


def snapshots(storage: Storage) -> list[Path]:
    return sorted(Path(storage.root, "x-1").iterdir())


def kept(storage: Storage, place: Place, text: str) -> Path:
    """Write a checkpoint and keep it. Returns the new snapshot."""
    (place.run("x-1") / "checkpoint.safetensors").write_text(text)
    storage.save(place, "x-1")
    return snapshots(storage)[-1]


def checkpoint_in(storage: Storage, place: Place) -> str:
    assert storage.restore(place, "x-1")
    return (place.run("x-1") / "checkpoint.safetensors").read_text()


# ---- writing


def test_a_save_that_failed_is_no_save(storage: Storage, place_of: Callable[[str], Place]):
    worker = place_of("worker")
    kept(storage, worker, "old")
    (worker.run("x-1") / "checkpoint.safetensors").write_text("new" * LARGE)
    with files_up_to(50_000), pytest.raises(NramError, match="cannot write to the storage .*File too large"):
        storage.save(worker, "x-1")
    assert len(snapshots(storage)) == 1  # what was cut off would take room
    storage.save(worker, "x-1")
    assert checkpoint_in(storage, place_of("study")) == "new" * LARGE


@pytest.mark.parametrize("same", [True, False])
def test_a_cut_off_snapshot_of_the_same_state_is_no_save(
    storage: Storage, place_of: Callable[[str], Place], tmp_path: Path, same: bool
):
    """It has the right name: that comes from the whole content. Another worker knows no more than the listing."""
    from nram.cluster.storage import Storage

    worker = place_of("worker")
    kept(storage, worker, "old")
    cut = kept(storage, worker, "new")
    os.truncate(cut, 1000)
    (storage if same else Storage(str(tmp_path / "kept"))).save(worker, "x-1")
    assert checkpoint_in(storage, place_of("study")) == "new"
    assert [path.name[:8] for path in snapshots(storage)] == ["00000000", "00000002"]


def test_a_state_that_is_kept_is_not_written_again(storage: Storage, place_of: Callable[[str], Place], tmp_path: Path):
    from nram.cluster.storage import Storage

    worker, other = place_of("worker"), Storage(str(tmp_path / "kept"))
    kept(storage, worker, "new")
    storage.save(worker, "x-1")
    other.save(worker, "x-1")
    assert [path.name[:8] for path in snapshots(storage)] == ["00000000"]


@pytest.mark.parametrize("same", [True, False])
def test_snapshots_that_were_cut_off_push_no_whole_one_out(
    storage: Storage, place_of: Callable[[str], Place], tmp_path: Path, same: bool
):
    from nram.cluster.storage import Storage

    worker = place_of("worker")
    whole = kept(storage, worker, "whole")
    for number in range(1, 4):  # uploads that were killed
        (whole.parent / f"{number:08d}.{number:032x}.tar").write_bytes(whole.read_bytes()[:-700])
    newest = kept(storage if same else Storage(str(tmp_path / "kept")), worker, "newest")
    assert snapshots(storage) == [whole, newest]
    os.truncate(newest, 1000)  # it had not reached the disk when the power failed
    assert checkpoint_in(storage, place_of("study")) == "whole"


def test_a_snapshot_that_cannot_be_read_is_an_error(storage: Storage, place_of: Callable[[str], Place]):
    """An older one in its place would lose work."""
    worker, study = place_of("worker"), place_of("study")
    kept(storage, worker, "old")
    newest = kept(storage, worker, "new")
    newest.unlink()
    newest.mkdir()  # root may read any file
    with pytest.raises(NramError, match="cannot read the storage"):
        storage.restore(study, "x-1")


# ---- reading


def ended(storage: Storage, place: Place) -> dict[str, bytes]:
    """Keep a trial that has ended. Returns its files."""
    (place.run("x-1") / "best").mkdir()
    (place.run("x-1") / "best" / "0").write_bytes(b"program")
    (place.run("x-1") / "checkpoint.safetensors").write_bytes(bytes(LARGE))
    place.time("x-1").write_text("3.0")
    place.outcome("x-1").write_text("{}")
    storage.save(place, "x-1")
    return files_of(place)


def files_of(place: Place) -> dict[str, bytes]:
    """The files of a place, without those that a study removes when a command takes it up."""
    found = [path for path in place.study.rglob("*") if path.is_file()]
    left = [path for path in found if path.parent.name == "trials" and is_leftover(path)]
    return {str(path.relative_to(place.study)): path.read_bytes() for path in found if path not in left}


def test_a_trial_that_ends_while_it_is_packed_is_packed_as_ended(
    storage: Storage, place_of: Callable[[str], Place], monkeypatch: pytest.MonkeyPatch
):
    """Its state was removed when the snapshot came to it, and what it came to was not there at first."""
    from nram.cluster import storage as module

    place, study = place_of("worker"), place_of("study")
    run = place.run("x-1")
    run.mkdir(parents=True, exist_ok=True)
    (run / "program.nram").write_text("found")
    seen = module.is_leftover

    def end(path: Path) -> bool:
        if path.name == "program.nram":
            place.outcome("x-1").write_text("{}")
        return seen(path)

    monkeypatch.setattr(module, "is_leftover", end)
    storage.save(place, "x-1")
    assert storage.restore(study, "x-1") and study.outcome("x-1").read_text() == "{}"


def test_checkpoints_of_runs_that_have_ended_are_not_kept(storage: Storage, place_of: Callable[[str], Place]):
    place, study = place_of("worker"), place_of("study")
    for number, names in enumerate((("checkpoint.safetensors", "result.json"), ("checkpoint.safetensors",))):
        folder = place.run("x-1") / "training" / str(number)
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text("x")
    storage.save(place, "x-1")
    assert storage.restore(study, "x-1")
    found = sorted(str(path.relative_to(study.run("x-1"))) for path in study.run("x-1").rglob("*.*") if path.is_file())
    assert found == ["training/0/result.json", "training/1/checkpoint.safetensors"]


def test_a_full_disk_leaves_no_outcome_without_its_run(storage: Storage, place_of: Callable[[str], Place]):
    files, study = ended(storage, place_of("worker")), place_of("study")
    words = r"cannot write .*checkpoint\.safetensors: File too large: the trial is whole in its storage.* go on with"
    with files_up_to(50_000), pytest.raises(NramError, match=words):
        storage.restore(study, "x-1")
    assert not study.outcome("x-1").exists()
    assert storage.restore(study, "x-1")
    assert files_of(study) == files


@pytest.mark.parametrize("steps", range(8))
def test_a_kill_leaves_no_outcome_without_its_run(storage: Storage, place_of: Callable[[str], Place], steps: int):
    """Each of four files is made and then renamed. The kill comes before one of these steps."""
    files, study = ended(storage, place_of("worker")), place_of("study")
    assert len(files) == 4
    words = [sys.executable, "-c", RESTORE, storage.location, str(study.study), str(steps)]
    assert subprocess.run(words, timeout=100).returncode == -signal.SIGKILL
    assert not study.outcome("x-1").exists()
    assert storage.restore(study, "x-1")
    assert files_of(study) == files


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.size = kind, link, 4 if kind == tarfile.REGTYPE else 0
    return found


FOREIGN = [
    entry("study.json"),
    entry("results.jsonl"),
    entry("runs/x-1"),
    entry("runs/x-2/run.json"),
    entry("runs/x-10/run.json"),
    entry("trials/x-2.json"),
    entry("trials/x-1.json/a"),
    entry("trials/.x-1.lock"),
    entry("runs/x-1/../x-2/run.json"),
    entry("runs/x-1/../../../outside"),
    entry("../outside"),
    entry("/outside"),
    entry("//runs/x-1/a"),
    entry("runs/x-1/" + "a" * 200 + "\0"),
    entry("runs/x-1/link", tarfile.SYMTYPE, "/etc/passwd"),
    entry("runs/x-1/link", tarfile.LNKTYPE, "study.json"),
    entry("runs/x-1/pipe", tarfile.FIFOTYPE),
    entry("runs/x-1/device", tarfile.CHRTYPE),
    entry("runs/x-1/folder", tarfile.DIRTYPE),
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda one: repr(one.name[:30]))
def test_a_snapshot_puts_nothing_outside_its_trial(
    storage: Storage, place_of: Callable[[str], Place], foreign: tarfile.TarInfo
):
    """Nor links, devices and pipes anywhere. Others may write to the storage."""
    study, buffer = place_of("study"), io.BytesIO()
    (study.run("x-1") / "mine").write_text("mine")
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for one in (entry("trials/x-1.json"), entry("runs/x-1/run.json"), foreign):
            archive.addfile(one, io.BytesIO(b"evil"))
    put(storage, buffer.getvalue())
    before = sorted(study.study.parent.rglob("*"))
    with pytest.raises(NramError, match="which is no file of this trial: remove .*tar"):
        storage.restore(study, "x-1")
    assert sorted(study.study.parent.rglob("*")) == before


def test_a_snapshot_that_is_no_tar_file_is_refused(storage: Storage, place_of: Callable[[str], Place]):
    put(storage, b"words" * 1000)
    with pytest.raises(NramError, match=r"00000000\..*tar is not a snapshot of a trial: .*; remove it"):
        storage.restore(place_of("study"), "x-1")


def put(storage: Storage, content: bytes) -> None:
    folder = Path(storage.root, "x-1")
    folder.mkdir()
    (folder / f"00000000.{hashlib.sha256(content).hexdigest()[:32]}.tar").write_bytes(content)
