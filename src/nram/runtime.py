"""Set-up of JAX: devices, CPU cores, and the folder for compiled programs. Versions of the libraries."""

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from nram.cache import cache_folder, load, store
from nram.errors import UsageError
from nram.extras import require
from nram.lazy import jax

Device = Any  # a jax.Device: naming its type would import JAX
DeviceName: TypeAlias = Literal["auto", "cpu", "gpu"]
M_MMAP_THRESHOLD = -3  # of glibc's malloc.h
LARGE_BLOCK = 2**20  # bytes
DEVICES: tuple[DeviceName, ...] = get_args(DeviceName)


def cpu_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prepare_devices(device: str = "auto") -> list[Device]:
    """The devices of this kind. The first becomes JAX's default, for a process of the command line.

    Call it before JAX computes anything: see `find_devices`.
    """
    devices = find_devices(device)
    jax.config.update("jax_default_device", devices[0])  # for arrays that are placed nowhere else
    return devices


@contextlib.contextmanager
def on_devices(device: str = "auto") -> Iterator[list[Device]]:
    """The devices of this kind. The first is JAX's default while this lasts, and in this thread alone.

    A process that calls nram keeps its own default.
    """
    devices = find_devices(device)
    with jax.default_device(devices[0]):
        yield devices


def find_devices(device: str = "auto") -> list[Device]:
    """The devices of this kind. A CPU is split into one device per core, which cannot be changed later."""
    require("train", "a network")
    # If JAX is running already, in a user's process, its devices stay as they are.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", cpu_cores())
    if jax.config.values["jax_compilation_cache_dir"] is None:  # set neither by the environment nor in this process
        _cache_compiled()
    try:
        return jax.devices() if device == "auto" else jax.devices(device)
    except (RuntimeError, AssertionError) as error:  # AssertionError: for some JAX_PLATFORMS
        if device == "gpu":
            cure = "on a machine with an NVIDIA driver, pip install 'nram[cuda]'; or leave out --device"
        else:
            cure = f"check the environment variable JAX_PLATFORMS ({error})"
        raise UsageError(f"JAX finds no {'device' if device == 'auto' else device}: {cure}") from None


@cache
def quick_options(level: int | None = None) -> dict[str, Any]:
    """XLA's options for what runs too little to be worth its best code: it compiles two to four times faster.

    `level` is LLVM's. The new emitters of fused loops take longer to compile than they save here. Where this version of
    XLA does not know the option, it is left out.
    """
    levels = {} if level is None else {"xla_backend_optimization_level": level}
    emitters = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda x: x, compiler_options=emitters).lower(0).compile()
    except Exception:  # of a type that differs between versions
        return levels
    return levels | emitters


def _cache_compiled() -> None:
    """Keep what JAX compiles in our cache."""
    folder = cache_folder("jax")
    if folder is None:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    # JAX's own cache writes in place, warns at every damaged entry, and never replaces one. Another version of JAX that
    # does not call this function uses that cache, in the same folder.
    with contextlib.suppress(AttributeError):
        internals: Any = getattr(jax, "_src").compilation_cache  # noqa: B009 - pyright does not know it
        stock = internals.get_file_cache
        internals.get_file_cache = lambda path: (_JaxCache(folder), path) if path == str(folder) else stock(path)


class _JaxCache:
    """Our cache with the names that JAX calls."""

    def __init__(self, folder: Path):
        self._path = folder
        self.get = partial(load, folder)
        self.put = partial(store, folder)


def device_name(devices: list[Device]) -> str:
    kind = devices[0].device_kind
    if devices[0].platform == "cpu":
        kind = f"{platform.machine()} CPU"
    return f"{len(devices)} x {kind}" if len(devices) > 1 else kind


def return_large_blocks() -> None:
    """From now on glibc returns large blocks of memory to the system as soon as they are free.

    By default it comes to keep blocks of up to 32 MiB. Populations and XLA's buffers come and go in many sizes, and the
    gaps between them grow: 512 members on merge took 910 MiB instead of 630. The processor time of a step stayed the
    same within 2%. What the user has set in the environment stays.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK)


def available_bytes(device: Device) -> int | None:
    """The memory of a device that a program may take; None if it is not known."""
    stats = device.memory_stats() if device.platform != "cpu" else None
    return stats.get("bytes_limit") if stats else free_memory()


def free_memory() -> int | None:
    """The bytes of the computer's memory that this process may still take; None if that is not known."""
    found = []
    with contextlib.suppress(OSError):
        words = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable:" in line)
        found.append(int(words.split()[1]) * 1024)
    with contextlib.suppress(OSError, ValueError):  # a container's limit; 'max' if it has none
        limit, used = (Path("/sys/fs/cgroup", name).read_text() for name in ("memory.max", "memory.current"))
        found.append(int(limit) - int(used))
    return min(found, default=None)


def peak_memory() -> int | None:
    """The bytes of main memory that this process has used at most; None if that is not known."""
    with contextlib.suppress(OSError, StopIteration):
        words = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM:" in line)
        return int(words.split()[1]) * 1024
    return None


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    from importlib import metadata  # slow to import, and `nram --help` does not need it

    names = ("nram", "jax", "jaxlib", "equinox", "optax", "numpy")
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
