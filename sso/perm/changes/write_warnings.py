"""Warnings about a write, which is saved all the same."""

from collections.abc import Iterable

from sso.perm.changes.candidates import changed_roles
from sso.perm.changes.scope import Scope
from sso.perm.changes.unknown_rules import unknown_rule_warnings
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.time_window_text import period_text
from sso.perm.engine.time_windows import FOREVER, TimeWindow
from sso.perm.stores.permission_state import PermissionState

MAX_WARNINGS = 20  # about time windows


def write_warnings(scope: Scope, before: PermissionState, after: PermissionState, now: int) -> list[str]:
    return [*unknown_rule_warnings(scope, before, after), *_window_warnings(before, after, now)[:MAX_WARNINGS]]


def _window_warnings(before: PermissionState, after: PermissionState, now: int) -> list[str]:
    """Names the time windows of changed conditions, because who gains and loses what is computed for the present."""
    warnings = []
    for application_id, new in after.compiled.items():
        old = before.compiled.get(application_id)
        if old is not new:
            warnings += [
                f"roles: the time window of {name}: {text}"
                for name in sorted(_changed_roles(old, new))
                if name in new.roles
                for text in _texts(new.roles[name].windows, now)
            ]
    for project_id, project in after.projects.items():
        known = _windows_by_group(before.projects.get(project_id))
        for group_id, windows in _windows_by_group(project).items():
            if windows != known.get(group_id, ()):
                warnings += [f"groups: the time window of {group_id}: {text}" for text in _texts(windows, now)]
    return warnings


def _changed_roles(old: CompiledApplication | None, new: CompiledApplication) -> Iterable[str]:
    return new.roles if old is None else changed_roles(old, new)


def _windows_by_group(project: ProjectFacts | None) -> dict[str, tuple[TimeWindow, ...]]:
    return {group.id: group.windows for group in project.groups if group.windows} if project else {}


def _texts(windows: Iterable[TimeWindow], now: int) -> list[str]:
    """Leaves out windows that are open and do not end."""
    changing = [window for window in dict.fromkeys(windows) if not _is_always_open(window, now)]
    return [period_text(window, now) for window in changing]


def _is_always_open(window: TimeWindow, now: int) -> bool:
    period = window.period(now)
    return period.is_open and period.until == FOREVER
