"""Fixtures of the tests of studies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.gpus import FakeGpus
from support.ray_cluster import RayCluster
from support.studies import Sweep


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    return Sweep(tmp_path)


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    return FakeGpus(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def cluster() -> Iterator[RayCluster]:
    found = RayCluster(2)
    assert found.address, "the cluster did not start"
    yield found
    found.close()


@pytest.fixture(scope="session", autouse=True)
def compiled_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Processes started by these tests share what they have compiled, and the user's cache is left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
        yield
