"""The page about the soft machine: its code runs from top to bottom and prints what the page shows."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import jax
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "soft-machine.md"
BLOCKS = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_the_code_of_the_page_prints_what_the_page_shows():
    text = PAGE.read_text()
    blocks = BLOCKS.findall(text)
    assert len(blocks) == text.count("```python") >= 8
    names: dict[str, Any] = {"__name__": "page"}
    with jax.numpy_rank_promotion("allow"):  # as a user has it
        for code, shown in blocks:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(code, names)  # noqa: S102
            printed = re.sub(r" +$", "", out.getvalue(), flags=re.MULTILINE).strip()
            assert printed == shown.strip(), code
