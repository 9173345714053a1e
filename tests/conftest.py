"""Strict settings for the whole suite: it runs on two CPU devices, and silent broadcasting is an error.

Warnings are errors too, through pyproject.toml.
"""

import gc
import os
import signal
import subprocess
import sys
from collections import defaultdict
from functools import partial
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "XLA_FLAGS" not in os.environ:  # the processes of xdist and those that tests start inherit it
    # The new emitters of fused loops take longer to compile than the tests run. An XLA without this switch would abort.
    flags = "--xla_cpu_use_fusion_emitters=false"
    known = [sys.executable, "-c", "import jax; jax.block_until_ready(jax.numpy.ones(2) + 1)"]
    probe = subprocess.run(known, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True)
    os.environ["XLA_FLAGS"] = "" if probe.returncode else flags

import jax
import pytest

from nram.extensions.modules import REGISTRY
from nram.modules import MODULES
from nram.tasks import TASKS

# JAX keeps millions of objects alive in a process of tests. Looking through all of them as often as Python does by
# default is a tenth of the processor time.
gc.set_threshold(200_000, 20, 100)
jax.config.update("jax_num_cpu_devices", 2)  # must be said before JAX starts
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """Processes that tests start obey Ctrl-C, also where a script runs the suite in the background.

    A shell lets such a command ignore SIGINT, and every process would inherit that.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def forgotten():
    """Tasks and modules that a test makes known in this process are forgotten after it."""
    tables: list[dict[Any, Any]] = [TASKS, MODULES, REGISTRY.sources, REGISTRY.from_files, REGISTRY.from_packages]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


@pytest.fixture
def float64():
    """Double precision for one test; the others stay as they are."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def quick_jit():
    """jax.jit for what runs for milliseconds: hardly optimised, it compiles faster."""
    return partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how long each folder of tests took, for the table in CONTRIBUTING.md."""
    seconds: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds["/".join(report.nodeid.partition("::")[0].split("/")[:2])] += report.duration
    if len(seconds) > 1:
        terminalreporter.section("minutes by folder")
        for folder, total in sorted(seconds.items(), key=lambda item: -item[1]):
            terminalreporter.write_line(f"{total / 60:5.1f}  {folder}")
