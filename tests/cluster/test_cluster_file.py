"""The cluster file that docs/scale.md shows is one that Ray accepts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'nram[cluster]'")
PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def test_the_cluster_file_is_one_that_ray_accepts():
    """As `ray up` reads it: prepared for its provider, then checked against the schema."""
    util, yaml = pytest.importorskip("ray.autoscaler._private.util"), pytest.importorskip("yaml")
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    prepared = util.prepare_config(yaml.safe_load(text))
    util.validate_config(prepared)
    assert sum(kind["max_workers"] for kind in prepared["available_node_types"].values()) == 2
    with pytest.raises(Exception, match="unknown_field"):
        util.validate_config({**prepared, "unknown_field": 1})
