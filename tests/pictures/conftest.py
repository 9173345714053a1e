"""Programs to draw and to trace. The random ones are those of tests/programs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from nram.programs.ir import Program
from nram.programs.text import from_text

COPY = """
nram program 1
name: copy
task: copy
limit: 2n+1
registers: r1 r2 r3 r4

when r2 = 0:
    o1 = READ(r4)
    WRITE(r4, o1)
    o2 = DEC(o1)
    r2, r4 := o2, 1
otherwise:
    o1 = READ(r4)
    o2 = ADD(r2, r4)
    WRITE(o2, o1)
    o3 = INC(r3)
    o4 = MIN(o3, r2)
    r3, r4 := r4, o4
"""


def _conftest_of(folder: str) -> ModuleType:
    path = Path(__file__).parents[1] / folder / "conftest.py"
    spec = importlib.util.spec_from_file_location(f"{folder}_conftest", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def copy_program() -> Program:
    """The paper's copy: it idles when it is done."""
    return from_text(COPY)


@pytest.fixture(scope="session")
def random_programs() -> Callable[[int], list[tuple[Random, Program]]]:
    """So many programs of all kinds, each with random numbers of its own."""
    random_program = _conftest_of("programs").random_program

    def make(count: int) -> list[tuple[Random, Program]]:
        pairs = []
        for seed in range(count):
            rng = Random(seed)
            full = seed % 3 == 0
            operations = None if seed % 3 == 1 else rng.randint(8, 18)
            pairs.append((rng, random_program(rng, full=full, operations=operations, registers=rng.randint(1, 6))))
        return pairs

    return make


@pytest.fixture(scope="session")
def random_controllers() -> Callable[..., Any]:
    return _conftest_of("machine").random_controllers
