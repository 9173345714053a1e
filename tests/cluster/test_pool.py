"""Slots of trials on cores and GPUs, and the cores that a trial holds."""

from __future__ import annotations

import os

import pytest

from nram.cluster import pool
from nram.cluster.cores import held_cores
from nram.cluster.pool import gpu_names, slots_of
from nram.cluster.spec import Resources
from nram.errors import NramError, UsageError


@pytest.fixture
def sixteen_cores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "cpu_cores", lambda: 16)


def visible(slots: list[dict[str, str]]) -> list[str]:
    return [slot["CUDA_VISIBLE_DEVICES"] for slot in slots]


def test_trials_share_gpus(sixteen_cores, monkeypatch: pytest.MonkeyPatch):
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
    with pytest.raises(UsageError, match="none that nvidia-smi lists"):
        slots_of(Resources(gpus=0.5))


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
