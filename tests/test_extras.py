"""The core without JAX, z3 and Matplotlib: every verb works, or names what is missing and how to install it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nram.cli import VERBS
from nram.extras import LIBRARIES

ROOT = Path(__file__).parents[1]
RUN = ROOT / "tests/compatibility/0.1/finished"
OWN = ROOT / "src/nram/examples"
EXAMPLES = ROOT / "src/nram/examples/files/double.jsonl"
STUDIES = ROOT / "tests/cluster/studies"
OPTIONAL = [module for modules in LIBRARIES.values() for module in modules]
TRAIN, VERIFY, _, PLOTS, EXPLORER, CLUSTER, TRACKING, MLFLOW, WANDB = (
    f"pip install 'nram[{extra}]'" for extra in LIBRARIES
)

# Python refuses to import a module whose entry is None.
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({[*OPTIONAL, 'jaxlib', 'scipy', 'PIL']}))\n"
COMMANDS = """
import contextlib, io, json
from nram.cli import main
ends = []
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    ends.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(ends))
"""

# The words of a command, its exit status, and what it says.
CASES = {
    "tasks": (0, "permutation"),
    "modules": (0, "READ"),
    "sample copy --complexity 3": (0, ""),
    "train copy --set help": (0, "stages.0.population"),
    "train copy --tensorboard": (1, f"tracking by tensorboard needs tensorboardX, which is not installed: {TRACKING}"),
    "train copy --track mlflow": (1, f"tracking by mlflow needs MLflow, which is not installed: {MLFLOW}"),
    "train copy --track wandb": (1, f"tracking by wandb needs W&B, which is not installed: {WANDB}"),
    "train copy": (1, f"training needs JAX, which is not installed: {TRAIN}"),
    "search access --registers 2 --verify-budget 0.2": (
        0,
        f"proofs: a proof needs Z3, which is not installed: {VERIFY}",
    ),
    f"learn {EXAMPLES} --budget 60": (0, f"search only: training needs JAX, which is not installed: {TRAIN}"),
    f"learn {EXAMPLES} --method train --out new": (1, TRAIN),
    f"sweep {STUDIES}/train.toml": (1, TRAIN),
    f"sweep {STUDIES}/search.toml --address local": (1, f"--address needs Ray, which is not installed: {CLUSTER}"),
    "search copy --address local": (1, f"a search on a cluster needs Ray, which is not installed: {CLUSTER}"),
    f"sweep {STUDIES}/search.toml --plot shares.png": (1, PLOTS),
    f"runs {RUN}": (0, "LEARNED"),
    f"eval {RUN}": (1, TRAIN),
    f"doctor {RUN}": (0, "finished"),
    f"extract {RUN} --out here.nram": (1, TRAIN),
    "simplify copy --out simple.nram": (0, ""),
    "verify copy --max-n 3 --largest 20 --budget 0.2": (0, f"a proof needs Z3, which is not installed: {VERIFY}"),
    "verify copy --max-n 0 --largest 0": (1, VERIFY),
    f"verify {OWN}/programs/maximum.nram --task {OWN}/tasks/maximum.py --max-n 2 --largest 20": (
        0,
        "the task maximum has no symbolic inputs",
    ),
    "prove copy": (1, f"a proof needs Z3, which is not installed: {VERIFY}"),
    f"check {ROOT}/README.md": (1, "it is not JSON"),
    "test copy copy --count 20": (0, "RIGHT"),
    "show copy": (0, "READ"),
    "run copy --memory 4,7,5,2,0,0,0,0": (0, ""),
    "trace copy": (0, "right"),
    "trace copy --out trace.html": (0, ""),
    "trace copy --out trace.png": (1, PLOTS),
    "trace copy --soft": (1, TRAIN),
    "serve --no-browser": (1, f"the explorer needs Starlette, which is not installed: {EXPLORER}"),
    "export-page copy --out page.html": (0, "open it in a browser"),
    "draw copy": (0, "copy.svg"),
    "draw copy --out copy.pdf": (1, PLOTS),
    "compile copy --emit object": (0, ""),
    "zoo": (0, "merge"),
    "new task": (0, "my_task.py"),
    "completion bash": (0, "complete -F _nram nram"),
    "examples copy": (0, "Next: nram learn examples/files/sum.jsonl"),
    "reproduce access --out paper": (1, TRAIN),
    "bench step": (1, TRAIN),
    "bench scaling": (1, TRAIN),
    "bench scaling --plot scaling.png": (1, PLOTS),
}


def run_without(code: str, folder: Path, given: str = "", hidden: str = WITHOUT) -> str:
    done = subprocess.run(
        [sys.executable, "-c", hidden + code], cwd=folder, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """How each command ends without the optional libraries: its status, standard output and standard error."""
    words = json.dumps([command.split() for command in CASES])
    return dict(zip(CASES, json.loads(run_without(COMMANDS, tmp_path_factory.mktemp("core"), words)), strict=True))


@pytest.mark.parametrize("command", CASES)
def test_a_command_without_the_optional_libraries(command, ends):
    status, out, err = ends[command]
    wanted, text = CASES[command]
    assert (status, text in out + err) == (wanted, True), out + err
    assert "Traceback" not in err
    assert "bug in nram" not in err


@pytest.mark.parametrize(
    "command, wanted, text",
    [
        ("eval run --plot here.png", 1, PLOTS),
        pytest.param("trace access --soft --complexity 2", 0, "access@trained of the zoo", marks=pytest.mark.slow),
        pytest.param("eval run --count 10", 0, "no plot: it needs Matplotlib, which", marks=pytest.mark.slow),
    ],
)
def test_networks_without_matplotlib(command, wanted, text, tmp_path):
    shutil.copytree(RUN, tmp_path / "run")
    hidden = "import sys; sys.modules['matplotlib'] = None\n"
    ((status, out, err),) = json.loads(run_without(COMMANDS, tmp_path, json.dumps([command.split()]), hidden))
    assert (status, text in out + err) == (wanted, True), out + err


def test_every_verb_is_tried():
    assert {command.split()[0] for command in CASES} == set(VERBS)


def test_python_names_what_is_missing(tmp_path):
    code = f"""
import nram
from pathlib import Path
for work in (
    lambda: nram.train("copy"),
    lambda: nram.extract({str(RUN)!r}),
    lambda: nram.learn({str(EXAMPLES)!r}, method="train"),
    lambda: nram.load_machine("copy"),
):
    try:
        work()
    except nram.NramError as error:
        print(error)
print(nram.verify(nram.load_program("access"), largest=5, exhaustive_up_to=2))
print(*Path().iterdir())
"""
    *refusals, report = run_without(code, tmp_path).split("\n", 4)
    assert [text.endswith(TRAIN) for text in refusals] == [True] * 4
    assert VERIFY in report
    assert report.split("\n")[-2:] == ["", ""], "what is refused leaves nothing behind"


def test_names_that_need_jax_are_passed_over_where_all_names_are_listed(tmp_path):
    code = """
import inspect, json, pydoc
import nram
names = {}
exec("from nram import *", names)
assert "verify" in names and "SoftMachine" not in names
assert "find_program" in dict(inspect.getmembers(nram)) and "find_program" in pydoc.render_doc(nram)
assert hasattr(nram, "verify") and not hasattr(nram, "SoftMachine")
for words in ("nram.SoftMachine", "from nram import SoftMachine"):
    try:
        exec(words)
    except nram.NramError as error:
        print(error)
"""
    assert run_without(code, tmp_path) == f"nram.SoftMachine needs JAX, which is not installed: {TRAIN}\n" * 2


def test_windows_is_refused_in_one_sentence():
    code = "import sys; sys.platform = 'win32'; import nram"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("ImportError: nram needs Linux or macOS: on Windows, install and run it in WSL\n")


def test_the_extras_install_what_the_code_asks_for():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, modules in LIBRARIES.items():
        names = {requirement.partition(">")[0].partition("[")[0] for requirement in extras[extra]}
        assert {name.removesuffix("-solver").removesuffix("-skinny") for name in names} == set(modules)
    few = ("cluster", "mlflow", "wandb")  # only those who have such a thing elsewhere need them
    assert extras["all"] == [f"nram[{','.join(extra for extra in LIBRARIES if extra not in few)}]"]
