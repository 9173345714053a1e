"""What the tests of own modules share."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest


@pytest.fixture
def file(tmp_path):
    """A file with this text, at a path of its own."""

    def write(text: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text))
        return path

    return write
