"""What the tests of own modules share: nothing that one of them makes known stays known."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from nram import own_modules
from nram.modules import MODULES


@pytest.fixture(autouse=True)
def forgotten():
    """What a test makes known is forgotten after it."""
    tables: list[dict[Any, Any]] = [MODULES, own_modules._sources, own_modules._read]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


@pytest.fixture
def file(tmp_path):
    """A file with this text, at a path of its own."""

    def write(text: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text))
        return path

    return write
