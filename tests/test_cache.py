"""The cache of compiled code: nobody else can put code into it, and no error of it stops the work."""

import hashlib
import os
import pickle
import random
import resource
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from nram import cache, numba_cache
from nram.llvm import cached
from nram.numba_cache import cached_on_disk
from nram.search import kernel

NAME, OTHER_USER = "name.o", 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """A new home folder, and a process that has reported nothing yet."""
    tmp_path.chmod(0o755)
    monkeypatch.setattr(cache, "_reported", [])
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o755)
    return tmp_path / "home"


def honest() -> bytes:
    return b"honest code"


def plant(folder: Path, code: bytes = b"planted code") -> Path:
    """Code with the right digest, as only someone who can write to the folder can leave it there."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
    (folder / NAME).write_bytes(hashlib.sha256(code).digest() + code)
    return folder


# ---- folders


def test_the_folders_belong_to_this_user_alone(home):
    former = os.umask(0)
    try:
        assert cached(NAME, honest) == honest()
    finally:
        os.umask(former)
    for folder in (home / ".cache", home / ".cache" / "nram", home / ".cache" / "nram" / "llvm"):
        assert folder.stat().st_mode & 0o7777 == 0o700
    plant(home / ".cache" / "nram" / "llvm", b"kept code")
    assert cached(NAME, honest) == b"kept code"
    assert not cache._reported


def test_a_relative_cache_folder_is_ignored(home, tmp_path, monkeypatch):
    plant(tmp_path / "work" / "relative" / "nram" / "llvm")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cached(NAME, honest) == honest()
    assert (home / ".cache" / "nram" / "llvm" / NAME).exists()


def test_a_relative_home_is_ignored(tmp_path, monkeypatch, caplog):
    plant(tmp_path / "relative" / ".cache" / "nram" / "llvm").chmod(0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "relative")
    assert cached(NAME, honest) == honest()
    assert "no home folder" in caplog.text


@pytest.mark.parametrize("where", [".cache/nram/llvm", ".cache/nram", ".cache", "."])
def test_planted_code_is_refused_where_others_may_write(where, home, caplog):
    plant(home / ".cache" / "nram" / "llvm")
    (home / ".cache" / "nram" / "llvm").chmod(0o700)
    (home / where).chmod(0o777)
    assert cached(NAME, honest) == cached(NAME, honest) == honest()
    (record,) = caplog.records
    assert "other users" in record.getMessage() and str((home / where).resolve()) in record.getMessage()


@as_root
@pytest.mark.parametrize("where", [".cache/nram/llvm", ".cache/nram", ".cache", "."])
def test_planted_code_is_refused_where_another_user_is_the_owner(where, home, caplog):
    plant(home / ".cache" / "nram" / "llvm").chmod(0o700)
    os.chown(home / where, OTHER_USER, OTHER_USER)
    assert cached(NAME, honest) == honest()
    assert "belongs to another user" in caplog.text


@as_root
def test_a_planted_file_of_another_user_is_refused(home, caplog):
    file = plant(home / ".cache" / "nram" / "llvm") / NAME
    file.parent.chmod(0o700)
    os.chown(file, OTHER_USER, OTHER_USER)
    assert cached(NAME, honest) == honest()
    assert "not a file of this user" in caplog.text


def test_a_link_to_a_folder_in_which_others_may_write_is_refused(home, tmp_path, caplog):
    planted = plant(tmp_path / "shared" / "llvm")
    planted.chmod(0o777)
    (home / ".cache").mkdir()
    (home / ".cache" / "nram").symlink_to(planted.parent)
    assert cached(NAME, honest) == honest()
    assert "open to other users" in caplog.text


def test_a_folder_with_the_sticky_bit_may_be_on_the_way(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "mine"))
    assert cached(NAME, honest) == honest()
    assert (shared / "mine" / "nram" / "llvm" / NAME).exists()
    assert not cache._reported


# A process of another user, without a home and an entry among the users, in a container say.
HOMELESS = f"""
import os, sys
from nram.llvm import cached
from nram.search import kernel
os.setgroups([]), os.setgid({OTHER_USER}), os.setuid({OTHER_USER})
print(cached({NAME!r}, lambda: b"honest code").decode())
"""


@as_root
def test_a_user_without_a_home_loads_nothing_from_the_shared_temporary_folder(tmp_path):
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    for name in (f"nram-{OTHER_USER}/kernels", f"nram-{OTHER_USER}/llvm", "nram/llvm", ".cache/nram/llvm"):
        plant(shared / name)
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    run = subprocess.run(
        [sys.executable, "-c", HOMELESS],
        env={**environment, "TMPDIR": str(shared)},
        cwd=shared,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "honest code\n", run.stderr
    assert run.stderr.count("\n") == 1 and "XDG_CACHE_HOME" in run.stderr


# ---- damage


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(1000))


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_link_to_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


DAMAGE = (emptied, truncated, garbage, a_folder, a_pipe, a_link_to_nowhere)
HEALED = tuple(damage for damage in DAMAGE if damage is not a_folder)  # replaced: the next process is quick again


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_code_is_made_again_and_reported_once(damage, home, caplog):
    for name in ("a", "b"):
        cached(name, honest)
        damage(home / ".cache" / "nram" / "llvm" / name)
    assert [cached(name, lambda: b"made again") for name in ("a", "b")] == [b"made again"] * 2
    assert len(caplog.records) == 1
    if damage in HEALED:
        assert cached("a", honest) == b"made again"


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_of_the_search_does_not_stop_it(damage, home, caplog):
    def doubled(number):
        return 2 * number

    def load_and_call() -> int:
        function = cached_on_disk(numba.njit(doubled), ("search/kernel.py",))
        assert function(21) == 42
        return sum(function.stats.cache_hits.values())

    assert load_and_call() == 0
    assert load_and_call() == 1
    (file,) = (home / ".cache" / "nram" / "numba").iterdir()
    damage(file)
    assert load_and_call() == 0
    assert len(caplog.records) == 1
    assert load_and_call() == (damage in HEALED)


def test_code_that_numba_cannot_rebuild_is_compiled_again(home, caplog):
    def tripled(number):
        return 3 * number

    function = cached_on_disk(numba.njit(tripled), ("search/kernel.py",))
    assert function(14) == 42
    (file,) = (home / ".cache" / "nram" / "numba").iterdir()
    cache.store(file.parent, file.name, b"a digest that is right, and no pickle")
    function = cached_on_disk(numba.njit(tripled), ("search/kernel.py",))
    assert function(14) == 42
    assert "tripled" in caplog.text


class Planted:
    """Creates a file when it is unpickled."""

    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_a_planted_pickle_is_not_read(home, tmp_path):
    def halved(number):
        return number // 2

    def call() -> bool:
        """Whether the planted code was executed."""
        assert cached_on_disk(numba.njit(halved), ("search/kernel.py",))(84) == 42
        return (tmp_path / "executed").exists()

    assert not call()
    (file,) = (home / ".cache" / "nram" / "numba").iterdir()
    cache.store(file.parent, file.name, pickle.dumps(Planted(tmp_path / "executed")))
    file.parent.chmod(0o777)
    assert not call()
    file.parent.chmod(0o700)
    assert call()  # in a private folder, the user's own files are trusted


def test_numba_uses_its_own_cache_for_no_function_of_the_search():
    functions = [value for value in vars(kernel).values() if hasattr(value, "py_func")]
    assert hasattr(kernel._anneal._cache, "sources")
    assert len(functions) > 20 and all(function._cache.cache_path is None for function in functions)


def test_numba_keeps_code_where_the_user_says(home, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "given" / "folder"))
    function = cached_on_disk(numba.njit(lambda number: number), ("search/kernel.py",))
    assert function(42) == 42
    folder = tmp_path / "given" / "folder" / "nram" / "numba"
    assert len(list(folder.iterdir())) == 1
    assert not (home / ".cache").exists()
    folder.parents[1].chmod(0o777)
    assert numba_cache._folder() is None  # others could exchange what is in it
    monkeypatch.setenv("NUMBA_CACHE_DIR", "relative")
    assert numba_cache._folder() == home / ".cache" / "nram" / "numba"


def test_a_file_of_the_current_folder_does_not_say_where_numba_keeps_code(home, tmp_path):
    pytest.importorskip("yaml")  # without it Numba reads no such file
    (tmp_path / ".numba_config.yaml").write_text(f"cache_dir: {tmp_path / 'planted'}\n")
    lines = "import numba; from nram.numba_cache import _folder; print(numba.config.CACHE_DIR, _folder())"
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == [str(tmp_path / "planted"), str(home / ".cache" / "nram" / "numba")], done.stderr


def test_a_full_disk_is_reported_once(home, caplog):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
    try:
        assert [cached(name, honest) for name in ("a", "b")] == [honest()] * 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(caplog.records) == 1
    assert not list((home / ".cache" / "nram" / "llvm").iterdir())


JAX_AT_WORK = """
import jax, sys
from nram.runtime import find_devices
find_devices("cpu")
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
print(jax.jit(lambda x: x @ x + 1)(jax.numpy.ones((3, 3))).sum(), jax.jit(lambda x: 2 * x)(21))
"""


def test_damaged_files_of_jax_are_reported_once_and_replaced(home, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)  # set for the tests of the command line

    def compute() -> str:
        run = subprocess.run([sys.executable, "-c", JAX_AT_WORK], capture_output=True, text=True, check=False)
        assert run.stdout == "36.0 42\n", run.stderr
        return run.stderr

    assert compute() == ""
    files = list((home / ".cache" / "nram" / "jax").iterdir())
    assert len(files) > 2
    for file in files:
        truncated(file)
    assert compute().count("\n") == 1
    assert compute() == ""
