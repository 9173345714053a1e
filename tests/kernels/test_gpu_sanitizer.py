"""The GPU's kernel under NVIDIA's compute-sanitizer: no access out of bounds, and no race in shared memory.

These tests need a GPU and the CUDA toolkit. They take minutes.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest
from support.kernel_cases import CASES, backend_or_skip

pytestmark = pytest.mark.slow
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
        "XLA_PYTHON_CLIENT_ALLOCATOR": "platform",  # an allocation for every buffer: its bounds are known to the tool
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }

    def run(tool: str, fault: str = "") -> tuple[str, int]:
        command = [program, "--tool", tool, "--kernel-regex", "kns=episodes", "--kernel-regex", "kns=gradients"]
        command += [sys.executable, "-m", "support.sanitized_gpu", fault]
        printed = subprocess.run(command, capture_output=True, text=True, env=environment)
        found = re.search(SUMMARY[tool], printed.stdout)
        assert found, printed.stdout[-2000:] + printed.stderr[-2000:]
        return printed.stdout, int(found[1])

    return run


@pytest.mark.parametrize("tool", SUMMARY)
def test_the_sanitizer_finds_nothing_in_any_case(sanitised, tool):
    printed, errors = sanitised(tool)
    assert errors == 0, printed[-4000:]
    assert printed.count("\nran ") + printed.startswith("ran ") == len(CASES)


@pytest.mark.parametrize(("tool", "fault"), [("memcheck", "memory"), ("racecheck", "race")])
def test_the_sanitizer_finds_a_planted_fault(sanitised, tool, fault):
    _, errors = sanitised(tool, fault)
    assert errors > 0
