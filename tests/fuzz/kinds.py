"""The kinds of files that nram reads: valid files made by nram's own writers, and what nram does with a file.

Heavy packages are imported where they are needed: a worker that reads programs does not load JAX.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import islice
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from support.random_programs import random_memory, random_program

from fuzz.binary import mutated_npy, mutated_safetensors
from fuzz.mutations import Members, limited, mutated_bytes, mutated_text, mutated_value, parse, to_json, to_toml
from fuzz.python_files import module_source, mutated_source, task_source
from nram.cache import load, store
from nram.errors import NramError
from nram.extensions import get_module, get_task
from nram.extensions import modules as extension_modules
from nram.extensions import tasks as extension_tasks
from nram.modules import MODULES
from nram.programs.execute import execute
from nram.programs.files import program_from, read_program, to_json_text
from nram.programs.interpret import interpret
from nram.programs.ir import Constant, Operation, Output, Program, Row
from nram.programs.library import CERTIFICATE, zoo_entries, zoo_folder
from nram.programs.memory import prepare_memory
from nram.programs.prove import check_certificate
from nram.programs.text import from_text, to_text
from nram.tasks import TASKS
from nram.tasks.example_files import read_examples
from nram.tasks.layout import Layout

Files = dict[str, bytes]
"""An input: contents by file name. A name that ends with a slash is an empty folder."""


@dataclass(frozen=True)
class Kind:
    """A kind of file, and what to do with it."""

    name: str
    valid: Callable[[], list[Files]]
    """Valid inputs, which are mutated. They are always the same."""
    mutate: Callable[[Random, list[Files]], Files]
    use: Callable[[Path, Random], None]
    """Read the files in a folder and use what they hold. It raises an NramError to refuse them."""
    quick: int
    """How many inputs `make test` tries."""

    def input(self, seed: int, index: int) -> Files:
        """The input of this number: first the valid ones, then mutated ones."""
        valid = self.valid()
        return valid[index] if index < len(valid) else self.mutate(Random(f"{self.name} {seed} {index}"), valid)


# ---- mutated files, by their name


def mutated_file(rng: Random, name: str, content: bytes, donors: list[bytes]) -> bytes:
    """A file with some changes that suit its form. Donors are other files of this name."""
    suffix = Path(name).suffix
    if suffix == ".safetensors":
        return mutated_safetensors(rng, content, donors, _signed)
    if suffix == ".npy":
        return mutated_npy(rng, content, donors)
    if not suffix or rng.random() < 0.1:
        return mutated_bytes(rng, content, donors)
    text, others = content.decode(), [donor.decode() for donor in donors]
    if suffix in (".json", ".search") and rng.random() < 0.85:
        text = to_json(mutated_value(rng, parse(text), [*map(parse, others)]))
    elif suffix == ".toml" and rng.random() < 0.7:
        value = mutated_value(rng, parse(json.dumps(tomllib.loads(text))))
        text = to_toml(value) if isinstance(value, Members) else to_json(value)
    elif suffix == ".jsonl" and rng.random() < 0.7:
        intact = text.splitlines()
        lines = list(intact)
        for _ in range(rng.choice((1, 1, 3))):
            here = rng.randrange(len(lines))
            lines[here] = to_json(mutated_value(rng, parse(rng.choice(intact)), [parse(rng.choice(intact))]))
            if rng.random() < 0.1:
                lines[here:here] = [lines[here]] * limited(rng.choice((10, 1000, 20_000)), lines[here])
        text = "\n".join(lines)
    else:
        text = mutated_text(rng, text, others)
    return text.encode("utf-8", "surrogatepass")


def mutated_files(rng: Random, valid: list[Files]) -> Files:
    """An input of which one file is mutated."""
    files = dict(rng.choice(valid))
    name = rng.choice(list(files))
    ending = Path(name).name
    donors = [content for one in valid for other, content in one.items() if Path(other).name == ending]
    files[name] = mutated_file(rng, name, files[name], donors)
    return files


def _signed(arrays: dict[str, np.ndarray], description: str) -> dict[str, str]:
    from nram.training import checkpoint

    return {"description": description, "digest": checkpoint._digest(arrays, description)}


def _written(write: Callable[[Path], None]) -> Files:
    """What a function writes into a folder."""
    with TemporaryDirectory() as folder:
        write(Path(folder))
        found = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name != ".lock")
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}


# ---- certificates


@cache
def _certificates() -> list[Files]:
    titles = "access@trained", "access@searched", "increment@searched"
    return [{CERTIFICATE: (zoo_folder() / title / CERTIFICATE).read_bytes()} for title in titles]


def _use_certificate(folder: Path, rng: Random) -> None:
    (path,) = folder.iterdir()
    check = check_certificate(path)
    if check.problem is not None:
        raise NramError(check.problem)


# ---- programs


@cache
def _programs() -> list[Files]:
    programs = [random_program(Random(seed), halting=0.3) for seed in range(12)]
    layouts = "x ->result values[] 0 M>2sum", "end:a start:out a[] b->c[3] ->out[a]", "x length:a a[] M=64 ->b[2n] 0"
    programs += [replace(program, layout=Layout.parse(text)) for program, text in zip(programs, layouts, strict=False)]
    programs += [entry.program for entry in zoo_entries()[:6]]
    texts = [{"program.nram": to_text(program).encode()} for program in programs]
    return texts + [{"program.json": to_json_text(program).encode()} for program in programs[:18]]


def _use_program(folder: Path, rng: Random) -> None:
    (path,) = folder.iterdir()
    program = read_program(path)
    assert from_text(to_text(program)) == program, "the text form gives another program"
    assert program_from(to_json_text(program)) == program, "the JSON form gives another program"
    memory, limit = random_memory(rng, rng.randint(3, 12)), rng.choice((0, 1, 5, 60))
    _check_runs(program, memory, limit)
    if rng.random() < 0.1 and program.rows <= 32 and program.operations <= 100:
        _check_transformed(program, memory, limit)


def _check_runs(program: Program, memory: list[int], limit: int) -> None:
    """The interpreter and machine code agree."""
    from nram.programs.native.jit import CompiledProgram

    expected = interpret(program, memory, limit)
    if not all(module.emits for module in program.modules) or program.operations > 3000:
        return
    batch = np.array([memory], np.int32)
    registers, steps, halted = CompiledProgram(program).run_batch(batch, limit)
    found = batch[0].tolist(), registers[0].tolist(), int(steps[0]), bool(halted[0])
    wanted = list(expected.memory), list(expected.registers), expected.steps, expected.halted
    assert found == wanted, f"machine code ends with {found}, the interpreter with {wanted}"


def _check_transformed(program: Program, memory: list[int], limit: int) -> None:
    """What is simplified does the same; pictures and C source are made without an error."""
    from nram.pictures.circuits import program_dot, program_svg
    from nram.programs.native.c_source import symbol_for, to_c
    from nram.programs.simplify import simplify
    from nram.search.structure import embed

    before, after = interpret(program, memory, limit), interpret(simplify(program), memory, limit)
    assert list(before.memory) == list(after.memory), "the simplified program does something else"
    program_svg(program)
    program_dot(program)
    to_c(program, symbol_for(program))
    with contextlib.suppress(NramError):  # not every program fits into a table of the search
        structure, genes = embed(program)
        assert list(interpret(structure.program(genes), memory, limit).memory) == list(before.memory)


# ---- search states


def _question():
    from nram.search.state import Question
    from nram.search.structure import Structure

    structures = Structure(1, 1, 1, ("READ", "INC", "WRITE")), Structure(2, 1, 1, ("READ", "INC", "WRITE"))
    return Question("access", 0, structures)


def _search_pool():
    from nram.search.instances import Pool

    return Pool(tuple(get_task("access").sample(2, 4, seed=0)))


@cache
def _states() -> list[Files]:
    from nram.search.chains import random_table
    from nram.search.state import Left, SearchState, save_state

    question = _question()
    first, second = ((one, random_table(one, 1)) for one in question.structures)
    wrong = tuple(get_task("access").sample(3, 2, seed=1))
    left = tuple(Left(structure, 2.5, genes) for structure, genes in (first, second))
    states = [
        SearchState(),
        SearchState(1, 600, 2, (), 3.5, first[1], first[0], left),
        SearchState(7, 12345, 14, wrong, 1.25, second[1], second[0], left[:1]),
    ]
    return [
        _written(lambda folder, state=state: save_state(folder / "out.search", question, state)) for state in states
    ]


def _use_state(folder: Path, rng: Random) -> None:
    from nram.search.engine import Search
    from nram.search.state import load_state, save_state

    path, again, question = folder / "out.search", folder / "again.search", _question()
    state = load_state(path, question)
    save_state(again, question, state)
    written = again.read_bytes()
    save_state(again, question, load_state(again, question))
    assert again.read_bytes() == written, "the state changes when it is written and read again"
    # Without time, the search still compiles for the state, joins its counterexamples and simplifies its best table.
    limits: dict[str, Any] = {"most_candidates": state.candidates + 1} if rng.random() < 0.05 else {"seconds": 0.0}
    Search(_search_pool(), lambda program: [], structures=question.structures, state=state, **limits).run()


# ---- runs, weights and checkpoints


@cache
def _config():
    from support.configs import plain_config

    small = ["registers=2", "modules=READ,INC,WRITE", "hidden=3", "batch=2", "validation=8", "stages.*.population=4"]
    return plain_config("access", *small, "stages.*.steps=50", "learning_rate=1e-3..1e-2")


def _filled(shapes, seed: int):
    """A tree of these shapes with small random values."""
    import jax

    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: rng.integers(1, 4, leaf.shape).astype(leaf.dtype), shapes)


def _write_run(folder: Path, finished: bool) -> None:
    from nram.training.callbacks import Report
    from nram.training.checkpoint import save_arrays
    from nram.training.group import GroupState
    from nram.training.member import abstract_controller
    from nram.training.population import abstract_population
    from nram.training.run_folder import RunFolder
    from nram.training.settings import config_to_dict
    from nram.training.trainer import _State

    config = _config()
    run = RunFolder.create(folder / "run", config, ["train", "access"], "a CPU")
    record = replace(run.record, versions={"nram": "0.2.0"}, created="2026-01-01T00:00:00Z")  # the same everywhere
    run.write_json("run.json", asdict(record))
    numbers: dict[str, Any] = dict.fromkeys(Report.__dataclass_fields__, 1)
    numbers |= {"group": 0, "waits": False, "group_name": None, "failed": None, "notice": None}
    for step in (25, 50):
        run.append_metrics(asdict(Report(**{**numbers, "step": step, "levels": {1: 4}, "stage_ends": step == 50})))
    plain = config_to_dict(config)
    group = GroupState(begun=True, stage=1, step=25, rounds=2, turn=1e6, solved_hard=0.5)
    state = _State(groups=[group], current=0, seconds=3.5, rows=2)
    population = _filled(abstract_population(config, config.stages[1].population), 0)
    save_arrays(run.checkpoint, population, {"state": asdict(state), "config": plain})
    if finished:
        for rank in (0, 1):
            description = {"task": "access", "config": plain, "hyper": {"noise": 0.0}, "place": rank, "steps": 50}
            description |= {"level": 3, "perfect": False, "validation_exact_hard": 0.5, "validation_halted": 0.5}
            run.save_member(rank, _filled(abstract_controller(config.machine), rank), {**description, "device": "CPU"})
        result = {"task": "access", "seed": 0, "perfect_members": 0, "examined_members": 0, "failed_examinations": []}
        result |= {"kept_members": 2, "best_validation_exact_hard": 0.5, "stages": 2, "seconds": 9.5, "device": "CPU"}
        run.write_result(result)


@cache
def _runs() -> list[Files]:
    return [_written(lambda folder, finished=finished: _write_run(folder, finished)) for finished in (True, False)]


def _mutate_run(rng: Random, valid: list[Files]) -> Files:
    """Mostly another run.json; otherwise another file, or a file that is missing, too much or a folder."""
    files = dict(rng.choice(valid))
    change = rng.random()
    name = "run/run.json" if change < 0.5 else rng.choice(list(files))
    if change < 0.9:
        files[name] = mutated_file(rng, name, files[name], [one[name] for one in valid if name in one])
        return files
    if change < 0.95 and name.endswith(".safetensors"):
        new = rng.choice(("x", "-1", "1.5", "\u0663", "00", "9" * 30, "1 ", "0x1"))
        files[f"run/best/{new}.safetensors"] = files[name]
        return files
    content = files.pop(name)
    if change < 0.95:
        files[name] = rng.choice((b"", b"{}", b"[]", b"null", b"\xff", content[: len(content) // 2]))
    elif change < 0.97:
        files[f"{name}/"] = b""
    return files


def _use_run(folder: Path, rng: Random) -> None:
    from nram.programs.extract.from_run import extract_run
    from nram.training.job import TrainingJob
    from nram.training.run_folder import RunFolder

    run = RunFolder.open(folder / "run")
    config = run.config
    json.dumps([asdict(run.record), run.result])
    if rng.random() < 0.1:
        run.differences("another CPU")
    metrics = run.read_metrics()
    job = TrainingJob.open(folder / "run", config, [], resume=True)
    json.dumps(job.result)
    if run.members():
        run.load_member(0)
        if rng.random() < 0.02:
            to_text(extract_run(run, 0, "raw").program)
    if rng.random() < 0.01:
        with contextlib.suppress(ModuleNotFoundError):  # matplotlib is not everywhere
            _draw(metrics, folder / "curve.svg")


def _draw(metrics: list, path: Path) -> None:
    from nram.pictures.curves import plot_run

    score = {"error": 0.5, "exact": 0.5}
    curve = [{"max_complexity": n, "soft": score, "hard": score} for n in (10, 20)]
    plot_run({"task": "access", "seed": 0, "curve": curve, "trained_up_to": 4, "member": 0}, metrics, path)


@cache
def _weights() -> list[Files]:
    (finished, _) = _runs()
    members = [{"weights.safetensors": finished[f"run/best/{rank}.safetensors"]} for rank in (0, 1)]
    return members


def _use_weights(folder: Path, rng: Random) -> None:
    from nram.programs.extract.table import extract_table
    from nram.training.member import wiring_of
    from nram.training.run_folder import load_weights

    config, controller, description = load_weights(folder / "weights.safetensors")
    json.dumps(description)
    machine = config.machine
    if rng.random() < 0.05 and machine.controller != "lstm" and machine.registers <= 4:
        to_text(extract_table(controller, wiring_of(machine)))


@cache
def _checkpoints() -> list[Files]:
    (_, unfinished) = _runs()
    return [unfinished]


def _mutate_checkpoint(rng: Random, valid: list[Files]) -> Files:
    files, name = dict(valid[0]), "run/checkpoint.safetensors"
    return {**files, name: mutated_file(rng, name, files[name], [files[name]])}


def _use_checkpoint(folder: Path, rng: Random) -> None:
    from nram.training.job import TrainingJob
    from nram.training.trainer import _Trainer

    job = TrainingJob.for_task("access", folder / "run", resume=True)
    from nram.runtime import prepare_devices
    from nram.training.callbacks import TrainingCallbacks

    devices, callbacks = prepare_devices("cpu"), TrainingCallbacks()
    trainer = _Trainer(job.folder, job.config, devices, callbacks, lambda: True, lambda members: None, inf)
    state, stages = trainer.state, job.config.stages
    (group,) = state.groups
    assert type(group.stage) is int and 0 <= group.stage < len(stages), "a wrong stage"
    assert type(group.step) is int and 0 <= group.step <= stages[group.stage].steps, "a wrong step"
    assert type(group.done) is bool and type(state.rows) is int and state.rows >= 0, "wrong rows"
    assert isinstance(state.seconds, (int, float)) and 0 <= state.seconds < 1e12, "wrong seconds"
    trainer._save()


# ---- settings


@cache
def _settings() -> list[Files]:
    from nram.training.settings import config_to_dict, load_config

    stage = {"max_complexity": 3, "steps": 9, "population": 4}
    part = {"batch": 8, "machine": {"registers": 3, "modules": "READ,INC"}, "stages": [stage]}
    whole = {"access": config_to_dict(_config()), "merge": config_to_dict(load_config("merge")), "copy": part}
    found: list[Files] = []
    for task, settings in whole.items():
        settings.pop("task", None)
        found.append({f"{task}/settings.json": json.dumps(settings).encode()})
        found.append({f"{task}/settings.toml": to_toml(parse(json.dumps(_without_nulls(settings)))).encode()})
    words = ["batch=4\nhidden=5\nstages.*.steps=7\nlearning_rate=0.01", "modules=READ,INC,WRITE\nnoise=1|10", "seed=3"]
    return found + [{"copy/words.txt": text.encode()} for text in words]


def _without_nulls(value: Any) -> Any:
    """A value without members that are null, which TOML does not have."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [*map(_without_nulls, value)] if isinstance(value, list) else value


def _use_settings(folder: Path, rng: Random) -> None:
    from nram.runtime import prepare_devices
    from nram.training.footprint import check_fits
    from nram.training.settings import config_from_dict, config_to_dict, load_config

    (path,) = (path for path in folder.rglob("*") if path.is_file())
    if path.name == "words.txt":
        words = path.read_bytes().decode("utf-8", "replace").split("\n")
        config = load_config(path.parent.name, overrides=words)
    else:
        config = load_config(path.parent.name, file=path)
    again = config_from_dict(json.loads(json.dumps(config_to_dict(config))))
    assert again == config, "the settings change when they are written and read again"
    check_fits(config, prepare_devices("cpu"))


# ---- examples and memories


@cache
def _examples() -> list[Files]:
    instances = [one for n in (1, 2, 3, 4) for one in get_task("copy").sample(n, 3, seed=n)]
    records = [one.as_dict() for one in instances]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    short = "".join(json.dumps({"input": one.input, "output": one.output}) + "\n" for one in instances)
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(records[0])
    for record in records:
        writer.writerow(" ".join(map(str, part)) if isinstance(part, list) else part for part in record.values())
    names = {"a.jsonl": lines, "b.jsonl": short, "c.csv": table.getvalue(), "d.json": json.dumps(records, indent=1)}
    rng = Random(0)
    lists = [[rng.randint(0, 6) for _ in range(rng.randint(0, 4))] for _ in range(12)]
    named = [{"values": one, "x": 3, "kept": [v for v in one if v > 3], "n": one.count(3)} for one in lists]
    names["e.jsonl"] = "".join(json.dumps(row) + "\n" for row in named)
    names["f.json"] = json.dumps([{"low": 1, "a": one, "b": one[:1], "sorted": sorted(one)} for one in lists])
    names["g.csv"] = "values;x;result\n" + "".join(f"{' '.join(map(str, one))};[2];{sum(one)}\n" for one in lists)
    return [{name: text.encode()} for name, text in names.items()]


def _use_examples(folder: Path, rng: Random) -> None:
    from nram.learning.parts import cautions, split
    from nram.search.instances import Pool

    (path,) = folder.iterdir()
    file = read_examples(path)
    again = folder / "again.jsonl"
    again.write_text("".join(json.dumps(example.instance.as_dict()) + "\n" for example in file.examples))
    before, after = ([one.instance for one in found.examples] for found in (file, read_examples(again)))
    assert before == after, "the examples change when they are written and read again"
    cautions(split(file.examples, 0, "the file"))
    Pool(tuple(before))


@cache
def _memories() -> list[Files]:
    rng = Random(0)
    memories = [random_memory(rng, size) for size in (3, 5, 12)]
    batch = [random_memory(rng, 6) for _ in range(3)]
    found: list[Files] = [{"memory.txt": " ".join(map(str, memory)).encode()} for memory in memories]
    found += [{"memory.json": json.dumps(value).encode()} for value in (*memories, batch, [{"input": memories[0]}])]
    for value in (*memories, batch):
        file = io.BytesIO()
        np.save(file, np.array(value, np.int32))
        found.append({"memory.npy": file.getvalue()})
    return found


@cache
def _writing_program() -> Program:
    """A program that writes to a cell that the memory names."""
    operations = Operation("READ", (Constant(0),)), Operation("WRITE", (Output(0), Constant(1)))
    return Program(("r1",), ((Row((None,), operations, (Constant(0),), True, 0),),))


def _use_memory(folder: Path, rng: Random) -> None:
    from nram.cli.memory_argument import read_memory

    (path,) = folder.iterdir()
    memory = prepare_memory(read_memory(f"@{path}"), rng.choice((None, None, 20, 100)))
    again = folder / rng.choice(("again.npy", "again.json"))
    if again.suffix == ".npy":
        np.save(again, memory)
    else:
        again.write_text(json.dumps(memory.tolist()))
    assert np.array_equal(prepare_memory(read_memory(f"@{again}")), memory), "the memory changes when it is read again"
    execute(_writing_program(), memory, 5)


# ---- tasks and modules


@contextlib.contextmanager
def _forgotten() -> Iterator[None]:
    """Forget the tasks and modules that are loaded inside."""
    registries = extension_modules.REGISTRY, extension_tasks.REGISTRY
    tables = [TASKS, MODULES, extension_modules.REGISTRY.sources]
    tables += [table for registry in registries for table in (registry.from_files, registry.from_packages)]
    before, folders = [dict(table) for table in tables], list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = folders
        for table, entries in zip(tables, before, strict=True):
            table.clear()
            table.update(entries)
        for name in [name for name in sys.modules if name.startswith("nram_user_")]:
            del sys.modules[name]


@cache
def _tasks() -> list[Files]:
    return [{"task.py": task_source().encode()}]


@cache
def _modules() -> list[Files]:
    return [{"module.py": module_source().encode()}]


def _mutate_source(rng: Random, valid: list[Files]) -> Files:
    (name,) = valid[0]
    source = (task_source if name == "task.py" else module_source)(rng)
    content = mutated_source(rng, source) if rng.random() < 0.2 else source.encode()
    return {name: content}


def _use_task(folder: Path, rng: Random) -> None:
    from nram.search.instances import task_pool

    with _forgotten():
        task = get_task(folder / "task.py")
        least = task.min_complexity
        for n in (least, least + 1, least + rng.randint(2, 30)):
            for instance in task.sample(n, 2, seed=n, memory_size=rng.choice((None, task.least_memory(n) + 5))):
                size = len(instance.input)
                assert all(type(cell) is int and 0 <= cell < size for cell in instance.input + instance.output)
                json.dumps(instance.as_dict())
        task.largest_complexity(50)
        task_pool(task, 0)
        if task.legal_inputs is not None:
            list(islice(task.legal_inputs(least, task.least_memory(least)), 100))


def _use_module(folder: Path, rng: Random) -> None:
    with _forgotten():
        module = get_module(folder / "module.py")
        for size in (3, 8, rng.randint(9, 500)):
            for _ in range(3):
                arguments = [rng.randrange(size) for _ in module.arguments]
                assert 0 <= module.integer(size, *arguments) < size
            if size < 9:
                module.fuzzy(np, size, *(np.full(size, 1 / size) for _ in module.arguments))
        operation = Operation(module.name, (Output(0), Constant(2))[: module.arity])
        operations = Operation("READ", (Constant(1),)), operation, Operation("WRITE", (Constant(0), Output(1)))
        program = Program(("r1",), ((Row((None,), operations, (Output(1),), False, 0),),))
        _check_runs(program, random_memory(rng, rng.randint(3, 40)), 5)
        assert from_text(to_text(program)) == program


# ---- the folder of nram learn


@cache
def _learned() -> list[Files]:
    from nram.learning.job import Learned, LearningJob, _write
    from nram.learning.judgement import judgement_of
    from nram.learning.parts import split

    instances = [one for n in (1, 2, 3, 4, 5) for one in get_task("access").sample(n, 3, seed=n)]
    lines = "".join(json.dumps(one.as_dict()) + "\n" for one in instances)
    state = next(iter(_states()[1].values()))

    def write(folder: Path) -> None:
        (folder / "access.jsonl").write_text(lines)
        (folder / "learned").mkdir()
        file = read_examples(folder / "access.jsonl")
        parts, job = split(file.examples, 0, ""), LearningJob(file, Path("learned"))
        program = next(entry.program for entry in zoo_entries() if entry.program.task == "access")
        made = (("examples", f"access.jsonl, SHA-256 {file.digest}"),)
        program = replace(program, task=None, made=made, verified=())
        with contextlib.chdir(folder):  # the report names the folder
            judgement, nothing = judgement_of(program, parts), ((), None, (), (), 0)
            _write(Learned(job, parts, program, judgement, 2, None, None, 1.5, False, ("note",), *nothing))
        (folder / "learned/search.json").write_bytes(state)

    return [_written(write)]


def _mutate_learned(rng: Random, valid: list[Files]) -> Files:
    """Mostly another report, which is the record. The examples stay, since other examples are refused."""
    files = dict(valid[0])
    others = [name for name in files if name.startswith("learned/")]
    name = "learned/report.json" if rng.random() < 0.8 else rng.choice(others)
    if rng.random() < 0.05:
        del files[name]
        return files
    return {**files, name: mutated_file(rng, name, files[name], [files[name]])}


def _use_learned(folder: Path, rng: Random) -> None:
    from nram.learning.job import LearningJob

    file = read_examples(folder / "access.jsonl")
    job = LearningJob(file, folder / "learned", budget=1.0, method="search", workers=1, resume=True)
    learned = job.run(stopping=lambda: True)
    str(learned)


# ---- the cache of compiled code


CODE = bytes(range(256)) * 4


@cache
def _caches() -> list[Files]:
    return [_written(lambda folder: store(folder, "code", CODE))]


def _use_cache(folder: Path, rng: Random) -> None:
    found = load(folder, "code")
    if found is None:
        raise NramError("damaged code is not used: it is compiled again")
    assert found == CODE, "damaged code is used"


# ---- all


KINDS = {
    kind.name: kind
    for kind in (
        Kind("programs", _programs, mutated_files, _use_program, 100),
        Kind("states", _states, mutated_files, _use_state, 100),
        Kind("runs", _runs, _mutate_run, _use_run, 100),
        Kind("weights", _weights, mutated_files, _use_weights, 100),
        Kind("checkpoints", _checkpoints, _mutate_checkpoint, _use_checkpoint, 80),
        Kind("settings", _settings, mutated_files, _use_settings, 100),
        Kind("examples", _examples, mutated_files, _use_examples, 150),
        Kind("memories", _memories, mutated_files, _use_memory, 500),
        Kind("tasks", _tasks, _mutate_source, _use_task, 80),
        Kind("modules", _modules, _mutate_source, _use_module, 60),
        Kind("learned", _learned, _mutate_learned, _use_learned, 150),
        Kind("caches", _caches, mutated_files, _use_cache, 100),
        Kind("certificates", _certificates, mutated_files, _use_certificate, 60),
    )
}
