"""The cache of compiled code: what its keys cover, and what happens when a file is damaged or cannot be written."""

import re
import shutil
from pathlib import Path

import pytest

from nram.llvm import PACKAGE, cached, fingerprint, source_digest
from nram.machine.kernels.common.specification import SOURCES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "nram" / "llvm"


def test_code_is_kept_and_made_again_when_it_is_damaged(folder):
    made = []

    def make() -> bytes:
        made.append(1)
        return b"code"

    assert cached("name.o", make) == cached("name.o", make) == b"code"
    assert len(made) == 1
    (kept,) = folder.iterdir()
    assert kept.read_bytes().endswith(b"code")
    kept.write_bytes(kept.read_bytes()[:-1])
    assert cached("name.o", make) == b"code"
    assert len(made) == 2
    assert kept.read_bytes().endswith(b"code")


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert cached("name.o", lambda: b"code") == b"code"


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("machine/distributions.py", "DOUBT = 0.1", "DOUBT = 0.2"),  # the constant is written into the kernels
        ("machine/kernels/common/vector_math.py", "TANH_SMALL = 0.6", "TANH_SMALL = 0.5"),
        ("machine/kernels/cpu/shape.py", "SLOTS = 64", "SLOTS = 32"),
        ("machine/kernels/gpu/sums.py", "SUMMING_WARPS = 4", "SUMMING_WARPS = 8"),
        ("machine/wiring.py", "UNREACHABLE = -1e9", "UNREACHABLE = -1e8"),
        ("llvm.py", "speed_level=3", "speed_level=2"),
    ],
)
def test_a_kernel_gets_another_key_when_a_constant_changes(file, before, after, tmp_path):
    copy = tmp_path / "nram"
    for source in SOURCES:
        original = PACKAGE / source
        (shutil.copytree if original.is_dir() else shutil.copy)(original, copy / source)
    digest = source_digest.__wrapped__  # without its cache
    assert digest(SOURCES, copy) == digest(SOURCES)
    text = (copy / file).read_text()
    assert before in text
    (copy / file).write_text(text.replace(before, after))
    assert digest(SOURCES, copy) != digest(SOURCES)


def test_the_key_covers_all_code_that_writes_kernels():
    """What the sources of kernels import from the package is one of the sources, or has no part in the code."""
    without_a_part = {"cache", "display", "errors", "kinds", "lazy", "runtime"}
    covered = {source.removesuffix(".py") for source in SOURCES} | without_a_part
    paths = [path for source in SOURCES for path in (PACKAGE / source, *(PACKAGE / source).rglob("*.py"))]
    assert PACKAGE / "machine" / "distributions.py" in paths
    for path in filter(Path.is_file, paths):
        imported = re.findall(r"^\s*from nram\.(\w+)", path.read_text(), re.MULTILINE)
        assert set(imported) <= covered, path


def test_the_key_covers_the_specification():
    assert fingerprint("one", SOURCES) == fingerprint("one", SOURCES) != fingerprint("another", SOURCES)
