"""Who may import whom: the layers of the package, the imports inside functions, and the homes of heavy libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.imports import Import, layer_of, layer_problems, order_problems, reached_libraries, read_imports

import nram

ROOT = Path(nram.__file__).parent

# Each layer and the layers that it may import, from the bottom up. A name is a module, or a package with all below it.
LAYERS = {
    "messages": "",
    "display": "messages",
    "errors": "messages",
    "extras": "errors",
    "lazy": "",
    "deprecated": "",
    "algebra": "",
    "limits": "",
    "kinds": "",
    "process": "",
    "progress": "messages",
    "files": "errors",
    "records": "errors",
    "cache": "errors files",
    "runtime": "errors extras lazy cache",
    "llvm": "cache",
    "numba_cache": "cache llvm",
    "module_tables": "errors lazy",
    "modules": "display errors algebra module_tables",
    "terms": "lazy",
    "tasks": "display errors lazy deprecated limits files records terms",
    "examples": "modules tasks terms",
    "templates": "modules tasks",
    "extensions": "errors limits module_tables modules tasks",
    # Left of the program: JAX and distributions.
    "machine": "errors kinds module_tables modules",
    "machine.kernels": "errors algebra kinds runtime llvm module_tables modules machine",
    "training": "display errors extras limits kinds messages files records runtime numba_cache modules tasks "
    "extensions machine machine.kernels",
    "training.display": "display messages progress training",
    # Right of it: integers. Nothing here knows a network.
    "programs": "display errors limits messages files records runtime modules tasks extensions",
    "programs.simplify": "errors modules tasks extensions programs",
    "programs.python_source": "errors modules tasks extensions programs programs.simplify",
    "programs.native": "display errors files llvm modules programs programs.python_source",
    "pictures": "display errors extras limits progress files modules tasks programs",
    "programs.verify": "display errors extras limits messages tasks programs pictures",
    "programs.prove": "errors extras lazy limits files records modules terms tasks programs programs.verify",
    "search": "display errors limits messages progress files records cache runtime llvm numba_cache module_tables "
    "modules tasks extensions programs programs.native programs.simplify",
    # The bridge, and what uses both sides.
    "programs.extract": "errors limits runtime tasks extensions machine training programs programs.simplify",
    "pictures.soft_traces": "errors machine tasks pictures",
    "pictures.soft_pictures": "pictures pictures.soft_traces",
    "learning": "display errors extras deprecated limits messages files records runtime tasks extensions training "
    "training.display "
    "programs programs.simplify pictures search programs.extract",
    "cluster": "display errors extras limits messages process progress files records cache runtime tasks extensions "
    "training programs search learning",
    "cluster.display": "display messages training cluster",
    "cluster.storage": "errors files cluster",
    "cluster.connection": "errors runtime cluster",
    "cluster.on_ray": "errors files runtime cluster cluster.connection cluster.storage",
    "cluster.chains_on_ray": "errors search cluster.connection",
    "reproduction": "errors extras limits files runtime tasks extensions machine training programs pictures "
    "programs.extract",
    "bench": "errors limits kinds files runtime tasks extensions machine.kernels training programs programs.native "
    "programs.simplify search",
    "api": "display errors extras limits progress files runtime modules tasks extensions training training.display "
    "programs programs.native programs.simplify pictures search programs.extract learning cluster",
    "soft_machine": "errors kinds modules tasks extensions machine training programs programs.extract api",
    "__init__": "errors extras deprecated",
    "explorer": "errors extras limits messages files records process runtime lazy modules tasks extensions machine "
    "training programs programs.native programs.python_source programs.simplify pictures programs.verify search "
    "programs.extract pictures.soft_traces learning soft_machine __init__",
    "own_modules": "deprecated",
    "cli": "display errors extras limits kinds messages process progress files runtime module_tables modules tasks "
    "extensions machine training training.display programs programs.native programs.simplify pictures programs.verify "
    "programs.prove search programs.extract pictures.soft_traces learning cluster cluster.display reproduction bench "
    "explorer __init__",
    "__main__": "process cli",
}

# The imports of our own modules inside functions, by the reason why they are not at the top of the file.
LATE = {
    "JAX: help, refusals and all that runs no network do not wait for it": """
        api -> programs.extract.from_run
        api -> training.report
        cli.bench.scaling -> bench.scaling
        cli.bench.step -> bench.step
        cli.eval -> training.report
        cli.extract -> programs.extract.from_run
        cli.trace -> pictures.soft_traces
        cli.trace -> training.member
        explorer.networks -> soft_machine
        explorer.runs -> programs.extract.from_run
        explorer.runs -> training.member
        learning.job -> learning.by_training
        reproduction.measuring -> training.evaluation
        reproduction.models -> programs.extract.from_run
        training.job -> training.footprint
        training.job -> training.trainer
        training.run_folder -> training.member
    """,
    "Ray: a study or a search on this machine does not need it": """
        cluster.job -> cluster.on_ray
        cluster.search -> cluster.chains_on_ray
    """,
    "matplotlib": """
        training.evaluated -> pictures.curves
        cli.eval -> pictures.curves
        cli.sweep -> pictures.shares
        cli.trace -> pictures.heatmaps
        cli.trace -> pictures.soft_pictures
        pictures.circuits -> pictures.figures
        reproduction.job -> reproduction.figure
    """,
    "llvmlite and numba: a program that is only read or drawn needs no machine code": """
        api -> programs.native.aot
        machine.kernels.cpu.shape -> machine.kernels.cpu.kernel
        machine.kernels.gpu.shape -> machine.kernels.gpu.launch
        programs.execute -> programs.native.jit
        search.job -> search.engine
        search.job -> search.shortening
        training.culling -> training.lexicase
    """,
    "starlette and uvicorn: help and bad usage do not wait for them": """
        cli.serve -> explorer.server
    """,
    "rich: functions that show nothing do not wait for it": """
        api -> learning.display
        api -> training.display
    """,
    "z3": """
        programs.verify -> programs.verify.proving
    """,
    "cycles: a verification ends with a proof, and a proof begins with a verification": """
        programs.verify.every_length -> programs.prove
    """,
    "signals: a process is ready for them before it imports the rest": """
        __main__ -> cli
    """,
    "cycles: the parser knows all verbs, and a script for shells is made from it": """
        cli.completion -> cli
    """,
    "cycles: methods of Program and Trace that show, run or save them": """
        pictures.trace_records -> pictures.trace_svg
        pictures.trace_records -> pictures.traces
        programs.ir -> pictures.circuits
        programs.ir -> programs.check
        programs.ir -> programs.execute
        programs.ir -> programs.files
        programs.ir -> programs.simplify.specialise
        programs.ir -> programs.text
    """,
}
MOST_LATE = 50

# Libraries that take long to import, and the layers that may import them. `nram.lazy` imports them on first use.
HEAVY = {
    "jax": "machine machine.kernels training programs.extract pictures.soft_traces bench soft_machine",
    "equinox": "machine training pictures.soft_traces soft_machine",
    "optax": "training",
    "llvmlite": "llvm machine.kernels programs.native search bench",
    "numba": "numba_cache search training",
    "z3": "examples programs.verify",
    "matplotlib": "pictures pictures.soft_pictures reproduction bench",
    "rich": "cli cluster.display training.display",
    "ray": "cluster.connection cluster.on_ray cluster.chains_on_ray",
    "pyarrow": "cluster.storage",
}

# Modules that must be quick to import, and the libraries that they leave alone.
JAX = "jax equinox optax"
QUICK = {
    "__init__": f"{JAX} numpy llvmlite numba z3 matplotlib rich",
    "cli": f"{JAX} numpy llvmlite numba z3 matplotlib rich",
    "extensions": f"{JAX} numpy llvmlite numba z3 matplotlib rich",
    "tasks": f"{JAX} numpy llvmlite numba z3 matplotlib rich",
    "programs.library": f"{JAX} llvmlite numba z3 matplotlib rich",
    "programs.verify": f"{JAX} llvmlite numba z3 matplotlib rich",
    "pictures.circuits": f"{JAX} llvmlite numba z3 matplotlib rich",
    "pictures.traces": f"{JAX} llvmlite numba z3 matplotlib rich",
    "api": f"{JAX} llvmlite numba z3 matplotlib rich",
    "explorer.export": f"{JAX} llvmlite numba z3 matplotlib rich",
}
EVERY_VERB = f"{JAX} z3 matplotlib"

ALLOWED = {f"nram.{layer}": [f"nram.{other}" for other in others.split()] for layer, others in LAYERS.items()}
IMPORTS = read_imports(ROOT)


def test_a_layer_imports_only_layers_below_it():
    assert layer_problems(IMPORTS, ALLOWED) == []
    assert order_problems(ALLOWED) == []


def test_every_layer_exists():
    modules = {one.importer for one in IMPORTS} | {one.imported for one in IMPORTS}
    assert set(ALLOWED) == {layer_of(module, ALLOWED) for module in modules if "." in module}


def test_late_imports_are_few_and_each_has_a_reason():
    found = [f"{one.importer} -> {one.imported}" for one in IMPORTS if one.late and "." in one.imported]
    words = [line.split(" -> ") for lines in LATE.values() for line in lines.split("\n") if line.strip()]
    listed = [f"nram.{importer.strip()} -> nram.{imported}" for importer, imported in words]
    assert sorted(set(found) - set(listed)) == [], "import it at the top, or give a reason"
    assert sorted(set(listed) - set(found)) == [], "these imports are gone"
    assert len(found) <= MOST_LATE


@pytest.mark.parametrize("library", HEAVY)
def test_a_heavy_library_is_imported_only_at_home(library):
    homes = {f"nram.{home}" for home in HEAVY[library].split()}
    importers = [one for one in IMPORTS if one.imported == library]
    assert {layer_of(one.importer, ALLOWED) for one in importers} == homes


@pytest.mark.parametrize("module", QUICK)
def test_quick_modules_leave_heavy_libraries_alone(module):
    reached = reached_libraries(IMPORTS, f"nram.{module}")
    assert {library: reached[library] for library in QUICK[module].split() if library in reached} == {}


def test_every_verb_starts_without_jax():
    verbs = [one.importer for one in IMPORTS if one.importer.startswith("nram.cli.")]
    for verb in sorted(set(verbs)):
        reached = reached_libraries(IMPORTS, verb)
        assert {library: reached[library] for library in EVERY_VERB.split() if library in reached} == {}, verb


# ---- the check itself, on a package with one mistake of each kind


@pytest.fixture
def made_up(tmp_path):
    files = {
        "__init__.py": "",
        "low.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import made_up.high\n",
        "high/__init__.py": "import numpy as np\nfrom made_up import low\n",
        "high/part.py": "def f():\n    from made_up.low import x\n    import jax.numpy\n",
        "wrong.py": "import made_up.high.part\n",
        "stray.py": "from made_up import low\n",
    }
    root = tmp_path / "made_up"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return read_imports(root)


def test_the_check_finds_what_is_wrong(made_up: list[Import]):
    allowed = {"made_up.low": [], "made_up.wrong": ["made_up.low"], "made_up.high": ["made_up.low"]}
    assert layer_problems(made_up, allowed) == [
        "made_up.stray, line 1: made_up.low: made_up.stray is in no layer",
        "made_up.wrong, line 1: made_up.high.part: made_up.wrong may not import made_up.high",
    ]
    upside_down = {"made_up.low": ["made_up.high"], "made_up.high": []}
    assert order_problems(upside_down) == ["made_up.low comes before made_up.high, which it may import"]
    late = [(one.importer, one.imported) for one in made_up if one.late]
    assert late == [("made_up.high.part", "made_up.low"), ("made_up.high.part", "jax")]
    assert reached_libraries(made_up, "made_up.wrong") == {"numpy": "made_up.high", "typing": "made_up.low"}
