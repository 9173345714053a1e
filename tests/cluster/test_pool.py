"""Slots of trials on cores and GPUs, and the cores that a trial holds."""

from __future__ import annotations

import os

import pytest
from support.gpus import FakeGpus

from nram.cluster import pool
from nram.cluster.cores import held_cores
from nram.cluster.gpus import Gpus, gpu_names, gpus_here, together
from nram.cluster.pool import slots_of
from nram.cluster.spec import Resources
from nram.errors import NramError, UsageError


@pytest.fixture
def sixteen_cores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "cpu_cores", lambda: 16)


def visible(slots: list[dict[str, str]]) -> list[str]:
    return [slot["CUDA_VISIBLE_DEVICES"] for slot in slots]


def test_trials_share_gpus(sixteen_cores, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert gpu_names() == ["2", "5"]
    assert visible(slots_of(Resources(gpus=0.5))) == ["2", "5", "2", "5"]
    assert visible(slots_of(Resources(gpus=0.1)))[:4] == ["2", "5", "2", "5"]
    assert len(slots_of(Resources(cores=4, gpus=0.1))) == 4  # the cores are the limit
    assert visible(slots_of(Resources(gpus=2))) == ["2,5"]
    assert visible(slots_of(Resources(gpus=0.5), workers=1)) == ["2"]
    with pytest.raises(UsageError, match="resources.gpus is 3, and this machine has 2"):
        slots_of(Resources(gpus=3))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UsageError, match="none that may be used .nvidia-smi"):
        slots_of(Resources(gpus=0.5))


@pytest.mark.parametrize(
    ("mib", "trials"),
    [(143_771, 8), (81_559, 4), (40_960, 2), (24_564, 1), (8_192, 1), (115_000, 7), (None, 1)],
)
def test_the_memory_of_a_gpu_says_how_many_trials_share_it(gpus: FakeGpus, sixteen_cores, mib: int | None, trials: int):
    gpus.have(["0"], mib)
    found = gpus_here()
    assert (found.count, found.sharing, found.usable) == (1, trials, True)
    assert len(slots_of(Resources(gpus=found.share))) == trials
    assert trials * round(found.share, 4) <= 1  # Ray rounds so


def test_the_gpus_of_several_machines():
    assert together([]) == Gpus(0)
    assert together([Gpus(2, 80.0), Gpus(1, 40.0), Gpus(0)]) == Gpus(3, 40.0)
    assert together([Gpus(2, 80.0), Gpus(4, 40.0, usable=False)]) == Gpus(2, 80.0)
    assert together([Gpus(1, usable=False)]) == Gpus(1, usable=False)
    assert together([Gpus(2, 80.0), Gpus(1)]).sharing == 1


def test_jax_platforms_may_leave_gpus_out(gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch):
    gpus.have(["0", "1"])
    assert gpus_here().count == 2
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert gpus_here() == Gpus(0)
    with pytest.raises(UsageError, match="the study began on GPUs .* JAX_PLATFORMS say which"):
        slots_of(Resources(gpus=0.5), begun=True)


def test_as_many_trials_as_cores(sixteen_cores, capsys: pytest.CaptureFixture[str]):
    assert len(slots_of(Resources())) == 16
    assert len(slots_of(Resources(cores=5))) == 3
    assert slots_of(Resources(), workers=2) == [{"JAX_PLATFORMS": "cpu"}] * 2
    assert capsys.readouterr().err == ""
    assert len(slots_of(Resources(cores=5), workers=4)) == 4
    assert "4 trials side by side want 20 cores, and this machine has 16" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are chosen on Linux alone")
def test_trials_hold_different_cores(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = os.sched_getaffinity(0)
    with held_cores(1):
        first = os.sched_getaffinity(0)
        assert len(first) == 1
        os.sched_setaffinity(0, before)
        if len(before) > 1:
            with held_cores(1):
                assert os.sched_getaffinity(0).isdisjoint(first)
    assert os.sched_getaffinity(0) == before
    with held_cores(len(before)):
        assert os.sched_getaffinity(0) == before
    with pytest.raises(NramError, match="resources.cores is"), held_cores(len(before) + 1):
        pass
