"""Names statements for logs and traces, such as ``oauth.tokens.statements.ROTATE``.

A statement is named after the constant that holds it, or after the function that builds it if there is no constant.
"""

import sys
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any


class StatementOrigin:
    """Where a statement was built. The name is found when it is first needed, which is rarely."""

    __slots__ = ("_function", "_module")

    def __init__(self, frame: FrameType) -> None:
        self._module: str = frame.f_globals.get("__name__", "")
        self._function = frame.f_code.co_qualname

    def name(self, statement: object) -> str:
        own_name = self._constant(statement) or self._function
        parts = [part for part in own_name.split(".") if not part.startswith("<")]  # without <locals> and <module>
        return ".".join([self._module.removeprefix("sso."), *parts])

    def _constant(self, statement: object) -> str:
        module = sys.modules.get(self._module)
        values = list(vars(module).items()) if module else []
        for name, value in values:
            if value is statement:
                return name.lstrip("_")
        for name, value in values:
            if any(item is statement for item in _items(value)):
                return name.lstrip("_")
        return ""


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def function_name(function: Any) -> str:
    """Returns the name of a transaction's function, such as ``perm.stores.groups.save_group``."""
    function = getattr(function, "func", function)  # inside a functools.partial
    qualified = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
    return qualified.removeprefix("sso.").replace(".<locals>", "")
