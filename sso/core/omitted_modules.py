"""Modules that libraries import and this program does not use: without them it starts sooner and takes less memory."""

import sys
from types import ModuleType
from typing import Any

# The server that Quart's method `run` would start, with two implementations of HTTP. Quart uses its names in
# annotations only.
_HYPERCORN = ("hypercorn.asyncio", "hypercorn.config", "hypercorn.trio", "hypercorn.typing")


class _Placeholder(ModuleType):
    """Has every name, so that ``from hypercorn.typing import Scope`` works."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Any


def omit_modules() -> None:
    """Must be called before structlog and Quart are imported; later it has no effect."""
    # structlog imports rich if it is installed, for tracebacks that are not used: a fifth of a command's time.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    for name in _HYPERCORN:
        sys.modules.setdefault(name, _Placeholder(name))


def restore_hypercorn() -> None:
    """From now on, hypercorn can be imported."""
    for name in _HYPERCORN:
        if isinstance(sys.modules.get(name), _Placeholder):
            del sys.modules[name]
