"""The training step of `reference_step.py` in straightforward PyTorch, for comparison.

It needs PyTorch (`pip install torch`), which nothing else here needs, and nothing from `nram`:

    python benchmarks/torch_step.py                     one core, the sizes of `nram bench step`
    python benchmarks/torch_step.py --device cuda --batch 32768 --memory-size 32 --steps 18 --hidden 32

A batch belongs to one member. A population would be a second batch axis of all weights. On a GPU a large batch replaces
it, which favours PyTorch.
"""

import argparse
import json
import time

import torch  # pyright: ignore[reportMissingImports]
from torch import Tensor  # pyright: ignore[reportMissingImports]

ARITIES = (1, 0, 0, 0, 1, 2, 2, 1, 2, 2, 2, 2, 2, 2)  # the paper's fourteen modules, in its order
READ, ZERO, ONE, TWO, INC, ADD, SUB, DEC, LESS, LESS_EQUAL, EQUAL, MIN, MAX, WRITE = range(14)


class Renormalise(torch.autograd.Function):
    """Rescale to a sum of 1; the backward pass is the identity."""

    @staticmethod
    def forward(context, x):
        return x / x.sum(-1, keepdim=True)

    @staticmethod
    def backward(context, *gradients):
        return gradients[0]


class Crop(torch.autograd.Function):
    """The identity, with a clipped gradient."""

    @staticmethod
    def forward(context, x, limit):
        context.limit = limit
        return x.view_as(x)

    @staticmethod
    def backward(context, *gradients):
        return gradients[0].clamp(-context.limit, context.limit), None


def renormalise(x: Tensor) -> Tensor:
    return Renormalise.apply(x)  # pyright: ignore[reportReturnType]


def wire_lengths(registers: int, repeats: int) -> list[int]:
    """How many values each softmax chooses from: module arguments in order, then the registers."""
    arities = ARITIES * repeats
    return [registers + i for i, arity in enumerate(arities) for _ in range(arity)] + [
        registers + len(arities)
    ] * registers


def subtract(a: Tensor, b: Tensor) -> Tensor:
    """The distribution of A - B mod M, by all rotations of `a`."""
    size = a.shape[-1]
    rotations = a.repeat(1, size + 1).reshape(-1, size, size + 1)[:, :, :size]
    return torch.einsum("bi,bij->bj", b, rotations)


def run_module(kind: int, memory: Tensor, arguments: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The module's output [B, M] and the memory [B, M, M] after it."""
    batch, size = memory.shape[:2]
    if kind in (ZERO, ONE, TWO):
        return torch.eye(size, device=memory.device)[kind - ZERO].expand(batch, size), memory
    first = arguments[0]
    if kind == READ:
        return torch.einsum("bi,biv->bv", first, memory), memory
    if kind in (INC, DEC):
        return first.roll(1 if kind == INC else -1, -1), memory
    a, b = arguments
    if kind == ADD:
        return subtract(a, b.flip(-1).roll(1, -1)), memory
    if kind == SUB:
        return subtract(a, b), memory
    if kind in (LESS, LESS_EQUAL, EQUAL):
        below = {LESS: a.cumsum(-1) - a, LESS_EQUAL: a.cumsum(-1), EQUAL: a}[kind]
        p = (below * b).sum(-1, keepdim=True)
        return torch.cat([1 - p, p, torch.zeros(batch, size - 2, device=memory.device)], -1), memory
    if kind == MIN:
        above_a, above_b = (x.flip(-1).cumsum(-1).flip(-1) for x in (a, b))
        return a * above_b + b * (above_a - a), memory
    if kind == MAX:
        return a * b.cumsum(-1) + b * (a.cumsum(-1) - a), memory
    written = (1 - a)[:, :, None] * memory + a[:, :, None] * b[:, None, :]
    return torch.eye(size, device=memory.device)[0].expand(batch, size), written


class Machine(torch.nn.Module):
    """The MLP controller and the machine it drives."""

    def __init__(self, registers: int, repeats: int, hidden: int, clip: float = 1.0):
        super().__init__()
        self.registers, self.kinds, self.clip = registers, list(range(14)) * repeats, clip
        self.lengths = wire_lengths(registers, repeats)
        outputs = sum(self.lengths) + 1
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(registers, hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, outputs),
        )

    def crop(self, x: Tensor) -> Tensor:
        return Crop.apply(x, self.clip)  # pyright: ignore[reportReturnType]

    def step(self, registers: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """New registers [B, R, M] and memory, halting logits and mean wire entropies [B]."""
        *choices, halt = self.layers(registers[:, :, 0]).split([*self.lengths, 1], -1)
        wires = [renormalise(choice.softmax(-1)) for choice in choices]
        entropy = torch.stack([-(wire * wire.clamp(min=1e-6).log()).sum(-1) for wire in wires]).mean(0)
        registers = self.crop(registers)
        values, remaining = list(registers.unbind(1)), iter(wires)

        def mixed() -> Tensor:
            return torch.einsum("bv,bvm->bm", next(remaining), torch.stack(values, 1))

        for kind in self.kinds:
            arguments = [self.crop(mixed()) for _ in range(ARITIES[kind])]
            output, memory = run_module(kind, memory, arguments)
            values.append(self.crop(renormalise(output)))
        registers = renormalise(torch.stack([mixed() for _ in range(self.registers)], 1))
        return registers, self.crop(memory), halt[:, 0], entropy

    def loss(self, start: Tensor, target: Tensor, steps: int, entropy_weight: float = 0.1) -> Tensor:
        """Expected negative log-likelihood over all cells, less the entropy bonus."""
        batch, size = start.shape
        unit = torch.eye(size, device=start.device)
        registers, memory, wanted = unit[0].expand(batch, self.registers, size), unit[start], unit[target]
        running, costs, entropies = torch.ones(batch, device=start.device), 0.0, []
        for t in range(steps):
            registers, memory, halt, entropy = self.step(registers, memory)
            stop = torch.ones_like(running) if t == steps - 1 else halt.sigmoid()
            surprise = -(memory * wanted).sum(-1).clamp(min=1e-6).log().mean(-1)
            costs = costs + running * stop * surprise
            running = running * (1 - stop)
            entropies.append(entropy)
        return torch.as_tensor(costs).mean() - entropy_weight * torch.stack(entropies).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"memory-size": 12, "registers": 4, "steps": 11, "repeats": 1, "hidden": 65, "batch": 50}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    machine = Machine(options.registers, options.repeats, options.hidden).to(options.device)
    optimiser = torch.optim.Adam(machine.parameters(), 5e-3)
    cells = (options.batch, options.memory_size)
    start, target = (torch.randint(0, options.memory_size, cells, device=options.device) for _ in range(2))

    def forward() -> None:
        with torch.no_grad():
            machine.loss(start, target, options.steps).item()

    def train() -> None:
        optimiser.zero_grad()
        value = machine.loss(start, target, options.steps)
        value.backward()
        torch.nn.utils.clip_grad_norm_(machine.parameters(), 1.0)
        optimiser.step()
        value.item()

    def rate(call) -> float:
        call()
        times, end = [], time.perf_counter() + options.seconds
        while time.perf_counter() < end or len(times) < 3:
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        return options.batch * options.steps / sorted(times)[len(times) // 2]

    rates = {"forward_example_steps_per_s": rate(forward), "train_example_steps_per_s": rate(train)}
    print(json.dumps({"configuration": vars(options), "torch": torch.__version__, **rates}))


if __name__ == "__main__":
    main()
