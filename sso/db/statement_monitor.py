"""Measures statements: logs and counts those that take long, and passes each of them to the telemetry."""

import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import structlog

from sso.telemetry.spans import Telemetry

T = TypeVar("T")
_NO_SPAN = nullcontext()
log = structlog.get_logger()


class StatementMonitor:
    """Neither the log nor a span contains SQL or parameters. The time does not include the wait for a connection."""

    def __init__(self, slow_ms: int, telemetry: Telemetry | None = None) -> None:
        """``slow_ms``: the duration from which a statement is logged; 0 logs none."""
        self.slow_observers: list[Callable[[str], None]] = []  # called with the name of each slow statement
        self._slow_s = slow_ms / 1000 or float("inf")
        self._telemetry = telemetry

    async def run(self, name: str, running: Awaitable[T], items: int = 0) -> T:
        """Awaits a running statement. ``items``: the size of a batch, whose callers have spans of their own."""
        span = self._telemetry.statement(name) if self._telemetry and not items else _NO_SPAN
        began = time.perf_counter()
        error: BaseException | None = None
        result: Any = None
        try:
            with span:
                result = await running
                return result  # type: ignore[no-any-return]
        except BaseException as raised:
            error = raised
            raise
        finally:
            seconds = time.perf_counter() - began
            if seconds >= self._slow_s:
                _log_slow(name, seconds, items, result, error)
                for observe in self.slow_observers:
                    observe(name)


def _log_slow(name: str, seconds: float, items: int, result: Any, error: BaseException | None) -> None:
    fields: dict[str, Any] = {}
    if items:
        fields["items"] = items
    if error is not None:
        fields["error"] = type(error).__name__
    elif isinstance(result, list):
        fields["rows"] = len(result)
    log.warning("database.statement_was_slow", statement=name, ms=round(seconds * 1e3, 1), **fields)
