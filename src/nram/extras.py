"""Optional libraries: which extra of nram installs them, and the message when one of them is missing.

The core runs, draws, compiles and searches for programs without any of them.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal, TypeAlias

from nram.errors import NramError

Extra: TypeAlias = Literal["train", "verify", "proof", "plots", "explorer", "cluster", "tracking", "mlflow", "wandb"]

LIBRARIES: dict[Extra, dict[str, str]] = {
    "train": {"jax": "JAX", "equinox": "Equinox", "optax": "Optax", "safetensors": "safetensors"},
    "verify": {"z3": "Z3"},
    "proof": {"z3": "Z3", "cvc5": "cvc5"},
    "plots": {"matplotlib": "Matplotlib"},
    "explorer": {"starlette": "Starlette", "uvicorn": "uvicorn"},
    "cluster": {"ray": "Ray", "pyarrow": "PyArrow", "fsspec": "fsspec"},
    "tracking": {"tensorboardX": "tensorboardX"},
    "mlflow": {"mlflow": "MLflow"},
    "wandb": {"wandb": "W&B"},
}
"""The modules that each extra installs, and the names that people know them by. pyproject.toml has the same table."""


def missing(extra: Extra) -> str | None:
    """The first library of this extra that is not installed, with the command that installs it; None if all are."""
    for module, name in LIBRARIES[extra].items():
        if find_spec(module) is None:
            return f"{name}, which is not installed: pip install 'nram[{extra}]'"
    return None


def require(extra: Extra, what: str) -> None:
    """Refuse `what`, such as "training", if a library of this extra is not installed."""
    if (library := missing(extra)) is not None:
        raise NramError(f"{what} needs {library}")


def missing_for(error: BaseException) -> str | None:
    """What `missing` says about the library that an import did not find; None if it belongs to no extra."""
    name = getattr(error, "name", None)
    return next((missing(extra) for extra, modules in LIBRARIES.items() if name in modules), None)
