"""Errors as the command line shows them: one line and an exit status. With NRAM_DEBUG=1 also the traceback."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
import warnings

from nram.errors import NramError
from nram.extras import missing_for
from nram.messages import visible

DEBUG = "NRAM_DEBUG"
LONGEST = 500  # characters of an unexpected error


def debugging() -> bool:
    return os.environ.get(DEBUG, "0") not in ("", "0")


def explain(error: BaseException, name: str) -> int:
    """Say on standard error why the command `name` failed. Returns the exit status."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()  # what was printed before the error comes first
    if isinstance(error, NramError):
        text = str(error)
    elif isinstance(error, KeyboardInterrupt):
        text = "interrupted"
    else:
        if debugging():
            traceback.print_exception(error)
        text = _unexpected(error)
    print(f"{name}: {visible(text)}", file=sys.stderr)
    return error.exit_status if isinstance(error, NramError) else 1


def _unexpected(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the system'}: {error.strerror}"
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return "out of memory: use a smaller population, batch or memory"
    words = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    words = words if len(words) <= LONGEST else f"{words[:LONGEST]}..."
    if isinstance(error, ImportError) and (library := missing_for(error)) is not None:
        return f"this needs {library}"
    if isinstance(error, ImportError):
        return f"{words}: a library that nram needs is missing or damaged: install nram again"
    return (
        f"{words}: this is a bug in nram. Please report it to the project's issue tracker, with the command and what "
        f"it prints when {DEBUG}=1 is set"
    )


def hide_tracebacks(name: str) -> None:
    """Replace Python's own reports of errors in threads and destructors, and of warnings, by single lines."""
    warnings.formatwarning = lambda message, *_: f"{name}: {visible(str(message))}\n"
    if not sys.warnoptions:  # Python shows such warnings only if the code of the user itself causes them
        warnings.filterwarnings("default", category=DeprecationWarning, module=r"nram\.")
    if debugging():
        return
    sys.excepthook = lambda kind, error, trace: explain(error, name) and None
    threading.excepthook = lambda arguments: arguments.exc_value and explain(arguments.exc_value, name) and None
    sys.unraisablehook = lambda arguments: None  # an object that could not be cleaned up: the work is not affected
