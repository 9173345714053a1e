"""The name of nram 0.1 for what `nram` itself exports. It goes in nram 0.3."""

from typing import Any

from nram.deprecated import renamed


def __getattr__(name: str) -> Any:
    if name in ("get_module", "register_module"):
        return renamed(f"nram.own_modules.{name}", f"nram.{name}")
    raise AttributeError(f"module 'nram.own_modules' has no attribute {name!r}")
