"""User-defined tasks and modules: loaded from Python files or from entry points of other packages, and checked."""
