"""Functions of one member, compiled for many: over the cores of a CPU, or over all local GPUs.

The population is split evenly over devices, which never communicate. On a GPU all members of a shard advance together
(`vmap`), or as many as its memory holds. A CPU core is faster with one member at a time, whose state stays in its
cache, so there the members of a shard are mapped over one after another, and there are as many CPU devices as cores.
"""

from functools import partial

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from nram.runtime import Device, quick_options


def shards_of(members: int, devices: int) -> int:
    """A population is split evenly, over as many devices as divide it."""
    return max(n for n in range(1, devices + 1) if members % n == 0)


def idle_gpus(members: int, devices: list[Device]) -> str | None:
    """What to say where the population cannot be split over all GPUs."""
    count, used = len(devices), shards_of(members, len(devices))
    if used == count or devices[0].platform == "cpu":
        return None
    return f"{members} members run on {used} of {count} GPUs: a population that {count} divides would use all"


def mapped(
    function, devices: list[Device], members: int, at_once: int | None = None, *, quick: bool = False, shared: int = 0
):
    """`function` of one member, compiled over a leading member axis of every argument but the first `shared` ones.

    On a GPU `at_once` members run together, all of them unless told otherwise. On a CPU a `quick` function is compiled
    faster, to code that may be slower.
    """
    cpu = devices[0].platform == "cpu"
    shards = shards_of(members, len(devices))
    options = quick_options() if quick and cpu else None

    def over_members(common, own):
        if cpu:
            return jax.lax.map(lambda one: function(*common, *one), own)
        if at_once is None or at_once >= members // shards:
            return jax.vmap(partial(function, *common))(*own)
        return jax.lax.map(lambda one: function(*common, *one), own, batch_size=at_once)

    def split(arguments):
        return arguments[:shared], arguments[shared:]

    if shards == 1:
        compiled = jax.jit(over_members, compiler_options=options)
        return lambda *arguments: compiled(*split(arguments))
    mesh = Mesh(np.array(devices[:shards]), ("members",))
    specs = PartitionSpec(), PartitionSpec("members")
    places = tuple(NamedSharding(mesh, spec) for spec in specs)
    # Members never communicate, so JAX need not check what varies between devices.
    sharded = jax.shard_map(over_members, mesh=mesh, in_specs=specs, out_specs=specs[1], check_vma=False)
    compiled = jax.jit(sharded, in_shardings=places, out_shardings=places[1], compiler_options=options)
    # The place of an argument is part of its type. Without putting arguments in place first, the second call, with
    # the results of the first, would compile again.
    return lambda *arguments: compiled(*jax.device_put(split(arguments), places))
