"""The GPU's kernel under NVIDIA's compute-sanitizer: no access out of bounds, and no race in shared memory.

These tests need a GPU and the CUDA toolkit. Run them one at a time: the tool crashes when many run side by side.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest
from support.kernel_cases import CASES, backend_or_skip

pytestmark = pytest.mark.slow
# Small machines, which between them have each controller: racecheck makes a kernel many times slower.
RACED = (
    "automaton",
    "sharp",
    "more wires than lanes of a warp",
    "READs that wait for a WRITE",
    "straight-through, halts",
)
SUMMARY = {"memcheck": r"ERROR SUMMARY: (\d+) error", "racecheck": r"RACECHECK SUMMARY: (\d+) hazard"}


@pytest.fixture
def sanitised(tmp_path):
    """A function that runs all cases under a tool, and returns what it printed and how many errors the tool found."""
    backend_or_skip("gpu")
    program = shutil.which("compute-sanitizer")
    if program is None:
        pytest.skip("compute-sanitizer is not installed")
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path),  # a planted fault must not stay in the cache
        "XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async",  # an allocation for every buffer: the tool knows its bounds
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }

    def run(tool: str, *words: str) -> tuple[str, int]:
        kernels = ("--kernel-name", "kns=episodes", "--kernel-name", "kns=gradients")
        command = [program, "--tool", tool, "--show-backtrace", "no", *kernels]
        command += [sys.executable, "-m", "support.sanitized_gpu", *words]
        printed = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
        found = re.search(SUMMARY[tool], printed.stdout)
        assert found, printed.stdout[-2000:] + printed.stderr[-2000:]
        return printed.stdout, int(found[1])

    return run


def test_no_case_accesses_memory_out_of_bounds(sanitised):
    printed, errors = sanitised("memcheck")
    assert errors == 0, printed[-4000:]
    assert len(re.findall("^ran ", printed, re.MULTILINE)) == len(CASES)


@pytest.mark.parametrize("name", RACED)
def test_no_controller_has_a_race_in_shared_memory(sanitised, name):
    printed, hazards = sanitised("racecheck", name)
    assert hazards == 0, printed[-4000:]
    assert f"ran {name} (" in printed


@pytest.mark.parametrize(("tool", "fault"), [("memcheck", "plant-memory"), ("racecheck", "plant-race")])
def test_the_sanitizer_finds_a_planted_fault(sanitised, tool, fault):
    _, errors = sanitised(tool, "automaton", fault)
    assert errors > 0
