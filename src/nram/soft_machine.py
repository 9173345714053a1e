"""The soft machine for your own JAX code: load or create one, run it, look at every distribution, take gradients.

`SoftMachine` is an Equinox module. Its arrays are the weights of the controller; everything else is static.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike

from nram.api import Run
from nram.errors import UsageError, check_whole
from nram.extensions import get_module, get_task, known_task
from nram.kinds import ControllerKind, LossKind
from nram.machine import Controller, Options, Recording, Wiring, init_controller, record_soft
from nram.modules import MODULE_NAMES, Module
from nram.programs.extract.from_run import Form, extract_controller
from nram.programs.ir import Program
from nram.programs.library import zoo_entries, zoo_weights
from nram.tasks._plain_arrays import as_arrays
from nram.tasks.base import Instance, Task, TracedInstance
from nram.training.loss import Outcome, soft_outcome
from nram.training.member import wiring_of
from nram.training.run_folder import RunFolder, load_weights

Mode: TypeAlias = Literal["soft", "straight-through", "hard"]
"""How wires choose. 'soft': they mix by their probabilities. 'hard': they take the most probable value, halting and
automaton states are certain too, and the weights get no gradient. 'straight-through': the forward pass takes the most
probable value, the backward pass mixes."""

Integers: TypeAlias = Sequence[int] | Sequence[Sequence[int]]
"""One memory or a batch of them, as lists."""

FAR_OFF = 0.01  # more than rounding or a small step away from a sum of 1


class SoftMachine(eqx.Module):
    """A Neural Random-Access Machine as an Equinox module: the same machine that `nram train` trains.

    `nram.load_machine` loads a trained one, `SoftMachine.create` makes one with random weights. `jax.jit`, `jax.vmap`,
    `jax.grad`, Equinox and Optax work on it. Gradients are for reverse mode: `jax.jvp` and `jax.jacfwd` do not work.
    """

    controller: Controller
    """The network, with all parameters."""
    wiring: Wiring = eqx.field(static=True)
    """The registers and the modules of the circuit."""
    task: str | None = eqx.field(static=True, default=None)
    """The name or the file of the task that it was trained on."""
    renormalising: bool = eqx.field(static=True, default=True)
    """Whether sums of 1 are restored after each operation. The backward pass takes this for the identity."""
    clip: float = eqx.field(static=True, default=math.inf)
    """C1 of the paper: gradients of activations are cropped to [-C1, C1]. Infinite: exact gradients."""
    epsilon: float = eqx.field(static=True, default=1e-6)
    """The least argument of every logarithm."""
    loss_kind: LossKind = eqx.field(static=True, default="expected")
    """The paper's loss ('expected'), or that of its footnote ('average')."""

    @classmethod
    def create(
        cls,
        *,
        key: Array,
        modules: Sequence[str | os.PathLike[str] | Module] = MODULE_NAMES,
        registers: int = 4,
        kind: ControllerKind = "mlp",
        hidden: int = 32,
        states: int = 4,
    ) -> SoftMachine:
        """A machine with random weights.

        `modules` are those of the circuit in their order, by name, by file or as objects. `kind` is the controller's:
        'mlp', 'lstm' or 'automaton' (with so many `states`). `hidden` is the width of its layers.
        """
        check_whole(1, registers=registers, hidden=hidden, states=states)
        if not modules:
            raise UsageError("modules is empty: the machine needs at least one")
        chosen = [module if isinstance(module, Module) else get_module(module) for module in modules]
        wiring = Wiring(registers, tuple(chosen))
        return cls(init_controller(kind, wiring, hidden=hidden, states=states, key=key), wiring)

    def __call__(
        self,
        memory: ArrayLike | Integers,
        steps: int,
        limits: ArrayLike | None = None,
        *,
        mode: Mode = "soft",
        keep_memory: bool = False,
    ) -> Recording:
        """Run `steps` steps on a memory or on a batch of them, and record everything.

        A memory is M integers [M], or M distributions [M, M] of floats, row i that of cell i; a batch is [B, M] or
        [B, M, M]. The output is forced at the step limit: `steps`, or the example's own in `limits`. `keep_memory`
        also records the memory after every step.
        """
        options, arrays, limits, batched = self._prepared(memory, steps, limits, mode)
        return _recorded(self, arrays, limits, steps, options, keep_memory, batched)

    def outcome(
        self,
        memory: ArrayLike | Integers,
        expected: ArrayLike | Integers,
        cells: ArrayLike | Integers | None = None,
        *,
        steps: int,
        limits: ArrayLike | None = None,
        mode: Mode = "soft",
    ) -> Outcome:
        """The loss, entropy, time and error of each example, as training computes them.

        `expected` are the integers that the memory should hold in the end, and `cells` says which of them count (a
        mask like `expected`; default: all).
        """
        options, start, limits, batched = self._prepared(memory, steps, limits, mode)
        end = jnp.asarray(expected)
        counted = jnp.ones(end.shape, bool) if cells is None else jnp.asarray(cells, bool)
        if not end.shape == counted.shape == start.shape[: 1 + batched]:
            raise UsageError(
                f"expected has the shape {list(end.shape)} and cells {list(counted.shape)}: both must be "
                f"{list(start.shape[: 1 + batched])}, a number for every cell of memory"
            )
        example = TracedInstance(start, end, counted, counted)
        return _compared(self, example, limits, steps, options, batched)

    def loss(
        self,
        memory: ArrayLike | Integers,
        expected: ArrayLike | Integers,
        cells: ArrayLike | Integers | None = None,
        *,
        steps: int,
        limits: ArrayLike | None = None,
        mode: Mode = "soft",
    ) -> Array:
        """The mean loss of `outcome`: a scalar, for `jax.grad`."""
        return jnp.mean(self.outcome(memory, expected, cells, steps=steps, limits=limits, mode=mode).loss)

    def to_program(self, form: Form | None = None, task: str | os.PathLike[str] | Task | None = None) -> Program:
        """The program of this machine, as `nram.extract` makes it from a run.

        `form` is 'raw', 'every-input', or 'task': simplified for the inputs of `task` (default: the task that the
        machine was trained on). Without a task the default is 'every-input'. An LSTM needs a task in every form.
        """
        if task is None:
            known = None if self.task is None else known_task(self.task)
        else:
            known = task if isinstance(task, Task) else get_task(task)
        form = form or ("every-input" if known is None else "task")
        return extract_controller(self.controller, self.wiring, known, form).program

    def astype(self, dtype: Any) -> SoftMachine:
        """The same machine with parameters of another type. It computes with the type of its parameters."""
        if jax.dtypes.canonicalize_dtype(dtype) != np.dtype(dtype):
            raise UsageError(f"JAX has no {np.dtype(dtype)} now: call jax.config.update('jax_enable_x64', True) first")
        return jax.tree.map(lambda leaf: leaf.astype(dtype), self)

    @property
    def dtype(self) -> np.dtype:
        """The type of the parameters."""
        return jax.tree.leaves(self.controller)[0].dtype

    @property
    def wire_names(self) -> tuple[str, ...]:
        """The wires of `Recording.wires`: the arguments of the modules, like 'READ.p', then the registers."""
        return self.wiring.wire_names

    @property
    def value_names(self) -> tuple[str, ...]:
        """What wires mix: the registers, then the modules. A module that is repeated is called 'READ#2'."""
        return self.wiring.value_names

    @property
    def parameters(self) -> int:
        """The number of weights and biases."""
        return sum(leaf.size for leaf in jax.tree.leaves(self))

    def __repr__(self) -> str:
        trained = "" if self.task is None else f", trained on {Path(self.task).stem}"
        return (
            f"<SoftMachine: {type(self.controller).__name__}, {self.wiring.registers} registers, "
            f"{len(self.wiring.modules)} modules, {self.parameters} parameters{trained}>"
        )

    def _prepared(self, memory: Any, steps: int, limits: Any, mode: Mode) -> tuple[Options, Array, Array, bool]:
        """The options of a mode, the memory and the step limits as arrays, and whether they are a batch."""
        if mode not in ("soft", "straight-through", "hard"):
            raise UsageError(f"mode is {mode!r}: give 'soft', 'straight-through' or 'hard'")
        if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
            raise UsageError(f"steps is {steps!r}: give a whole number from 1 up, which is no traced value of JAX")
        array, batched = _tape(memory, self.dtype)
        array_limits = jnp.asarray(steps if limits is None else limits, jnp.int32)
        if batched:
            array_limits = jnp.broadcast_to(array_limits, array.shape[:1])
        options = Options(self.clip, self.epsilon, self.renormalising, mode == "straight-through", mode == "hard")
        return options, array, array_limits, batched


def _tape(memory: Any, dtype: Any) -> tuple[Array, bool]:
    """A memory or a batch of them as an array, checked as far as its values are known; and whether it is a batch."""
    array = jnp.asarray(memory)
    whole = jnp.issubdtype(array.dtype, jnp.integer)
    if not whole and not jnp.issubdtype(array.dtype, jnp.floating):
        raise UsageError(f"memory holds {array.dtype}: give integers, or distributions of floats")
    batched = array.ndim == (2 if whole else 3)
    size = array.shape[-1] if array.ndim else 0
    if array.ndim - batched != (1 if whole else 2) or size < 3 or (not whole and array.shape[-2] != size):
        raise UsageError(
            f"memory has the shape {list(array.shape)}: give integers [M] or [B, M], or distributions [M, M] or "
            "[B, M, M], with M = 3 or more"
        )
    if not isinstance(array, Tracer):
        values = np.asarray(array)
        if whole and values.size and not 0 <= values.min() <= values.max() < size:
            raise UsageError(f"memory of {size} cells holds {values.min()} to {values.max()}: give 0 to {size - 1}")
        if not whole and not (np.abs(values.sum(-1) - 1).max(initial=0) < FAR_OFF and values.min(initial=0) > -FAR_OFF):
            raise UsageError("memory holds floats that are no distributions: every row must be probabilities of sum 1")
    return array.astype(jnp.int32 if whole else dtype), batched


@eqx.filter_jit
def _recorded(machine: SoftMachine, memory, limits, steps: int, options: Options, keep: bool, batched: bool):
    def one(memory: Array, limit: Array) -> Recording:
        recording = record_soft(machine.controller, machine.wiring, memory, limit, steps, options, machine.dtype)
        # What is not returned is not kept either: the compiler drops it.
        return recording if keep else replace(recording, memory=None)

    return (jax.vmap(one) if batched else one)(memory, limits)


@eqx.filter_jit
def _compared(machine: SoftMachine, example, limits, steps: int, options: Options, batched: bool):
    def one(example: TracedInstance, limit: Array) -> Outcome:
        network, kind = machine.controller, machine.loss_kind
        return soft_outcome(network, machine.wiring, example, limit, steps, options, kind=kind, dtype=machine.dtype)

    return (jax.vmap(one) if batched else one)(example, limits)


def load_machine(source: str | os.PathLike[str] | Run, member: int = 0, *, trust: bool = False) -> SoftMachine:
    """Load the soft machine of a trained member, with its weights.

    `source` is a name of the zoo ('copy', 'copy@trained'), a run (its folder, or what `nram.train` returned), or a file
    of weights from a run's folder `best`. Member 0 of a run is the best. `trust` executes the Python files of a
    user-defined task and of modules that only the run or the file names.
    """
    entries = [entry for entry in zoo_entries() if source in (entry.name, entry.title)]
    path = source.path if isinstance(source, Run) else Path(source)
    if member and (entries or path.is_file()):
        raise UsageError(f"{source} holds one member, so there is no member {member}: leave it out")
    if entries:
        # A bare name means the entry that was trained: others have no weights.
        with zoo_weights(next((entry for entry in entries if entry.has_weights), entries[0])) as file:
            config, controller, _ = load_weights(file)
    elif path.is_file():
        config, controller, _ = load_weights(path, trust)
    else:
        if not path.exists():
            names = sorted({entry.name for entry in zoo_entries() if entry.has_weights})
            raise UsageError(f"there is no run and no file {path}, and the zoo has weights of {', '.join(names)}")
        folder = RunFolder.open(path, trust)
        config, controller, _ = folder.load_member(member)
    return SoftMachine(
        jax.tree.map(jnp.asarray, controller),
        wiring_of(config.machine),
        task=config.task,
        renormalising=config.machine.renormalise,
        epsilon=config.epsilon,
        loss_kind=config.loss,
    )


def stack_instances(instances: Iterable[Instance]) -> TracedInstance:
    """Instances of a task as arrays: `input` and `output` are integers [B, M], `cells` and `scored` masks [B, M]."""
    chosen = list(instances)
    sizes = sorted({len(instance.input) for instance in chosen})
    if len(sizes) != 1:
        raise UsageError(
            f"the instances have {' and '.join(map(str, sizes)) or 'no'} cells: give some of one memory size "
            "(Task.sample takes memory_size)"
        )
    return TracedInstance(*map(jnp.asarray, as_arrays(chosen)))
