"""The connection of this process to a Ray cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from nram.cluster.gpus import Gpus, gpus_of_machine, together
from nram.errors import NramError, UsageError
from nram.runtime import cpu_cores

TO_START = "'ray start --head' starts one, and --address local one for this command alone"
LOOK_SECONDS = 60.0  # that a machine has to say which GPUs it has
KNOCK_SECONDS = 5.0  # that a cluster has to answer; Ray itself would try for minutes


@contextlib.contextmanager
def connected(address: str, verb: str) -> Iterator[None]:
    """Join the cluster, for this verb. It is left in the end, unless this process was part of it before."""
    if ray.is_initialized():
        yield
        return
    # Ray reports lost workers on standard output, where the result is to stand alone.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        _connect(address, verb)
        try:
            yield
        finally:
            ray.shutdown()


def _connect(address: str, verb: str) -> None:
    require_answer(address, verb)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address == "local":
        quiet |= {"num_cpus": cpu_cores(), "include_dashboard": False}
    on_termination = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        if address == "auto" and "Could not find any running Ray" in str(error):
            raise NramError(f"no Ray cluster runs on this machine: {TO_START}") from None
        words = " ".join(str(error).split())[:300]
        raise NramError(_no_answer(address, words)) from None
    finally:
        # Ray's own handler would end the process where it stands. Ours lets the job save its work.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_termination)


def require_answer(address: str, verb: str) -> None:
    """Refuse an address of another form, and HOST:PORT where nothing listens."""
    if "://" in address:
        raise UsageError(
            f"--address {address}: run nram {verb} on a machine of the cluster, as by 'ray job submit' or 'ray "
            "attach', and give HOST:PORT or auto"
        )
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--address {address}: give HOST:PORT, auto or local")
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()
    except (OSError, UnicodeError) as error:
        raise NramError(_no_answer(address, getattr(error, "strerror", None) or str(error))) from None


def _no_answer(address: str, words: str) -> str:
    return f"no Ray cluster answers at {address}: {words}; {TO_START}"


def gpus_of_cluster() -> Gpus:
    """The GPUs of all machines of the cluster, each asked about its own."""
    look = ray.remote(num_cpus=0)(gpus_of_machine)
    found = []
    for node in ray.nodes():
        if node["Alive"] and (count := int(node["Resources"].get("GPU", 0))):
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            found.append((count, look.options(scheduling_strategy=there).remote(count)))
    return together(_answer(count, asked) for count, asked in found)


def _answer(count: int, asked: Any) -> Gpus:
    try:
        return ray.get(asked, timeout=LOOK_SECONDS)
    except (RayError, TimeoutError):  # such as a machine without nram: its trials will say so
        return Gpus(count)


def require_room(wanted: dict[str, float], what: str) -> None:
    """Refuse `what` if no machine of the cluster has these resources: it would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(name, 0) >= count for name, count in wanted.items()) for node in nodes):
        asked = ", ".join(f"{count:g} {name}" for name, count in wanted.items() if count)
        most = {name: max((node.get(name, 0) for node in nodes), default=0) for name, count in wanted.items() if count}
        has = ", ".join(f"{count:g} {name}" for name, count in most.items())
        raise NramError(f"{what} needs {asked}, and a machine of the cluster has at most {has}")
