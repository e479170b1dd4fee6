"""Finds the log events in the source: calls such as ``log.warning("queue.delivery_failed", reason=…)``."""

import ast
from dataclasses import dataclass, field

from scripts.reference_tables.source import CallSite, Module

LEVELS = {name: name for name in ("debug", "info", "warning", "error", "critical")} | {"exception": "error"}
LOGGERS = ("log", "_log")
NOT_FIELDS = ("exc_info",)


@dataclass
class LogEvent:
    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


def log_events(modules: list[Module]) -> dict[str, LogEvent]:
    """Returns every event of the modules. Raises ValueError if the event of a log call is not a literal string."""
    events: dict[str, LogEvent] = {}
    wrappers: dict[str, tuple[int, str, str]] = {}  # functions that pass their own argument on as the event
    for site in (site for module in modules for site in module.calls):
        if not (found := _log_call(site)):
            continue
        level, event = found
        if parameter := site.parameter(event):
            function, position, name = parameter
            wrappers[function] = (position, name, level)
        else:
            _add(events, site, level, event)
    for site in (site for module in modules for site in module.calls):
        if site.callee in wrappers:
            position, name, level = wrappers[site.callee]
            event = site.argument(position, name)
            if isinstance(event, ast.Constant):
                _add(events, site, level, event)
    return events


def _add(events: dict[str, LogEvent], site: CallSite, level: str, event: ast.expr | None) -> None:
    if not isinstance(event, ast.Constant) or not isinstance(event.value, str):
        raise ValueError(f"{site.location}: expected a literal string as the event of a log call")  # noqa: TRY004
    known = events.setdefault(event.value, LogEvent())
    known.levels.add(level)
    known.fields |= {keyword.arg or "…" for keyword in site.call.keywords} - set(NOT_FIELDS)


def _log_call(site: CallSite) -> tuple[str, ast.expr | None] | None:
    """Returns the level and the event if the call writes a log line."""
    if level := _level(site.call.func):
        return level, site.argument(0, "event")
    if site.call.args and (level := _level(site.call.args[0])):  # RateLimitedLog: log(_log.debug, "event")
        return level, site.argument(1, "event")
    if isinstance(site.call.func, ast.Attribute) and site.call.func.attr == "log" and len(site.call.args) == 2:
        return "as logged", site.argument(1, "event")  # logger.log(level, "event")
    return None


def _level(node: ast.expr) -> str | None:
    """Returns the level if the expression is a method of a logger: ``log.info`` or ``self._log.info``."""
    match node:
        case ast.Attribute(value=ast.Name(id=logger) | ast.Attribute(attr=logger), attr=method) if logger in LOGGERS:
            return LEVELS.get(method)
    return None
