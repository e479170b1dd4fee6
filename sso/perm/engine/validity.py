"""How long permissions stay as they were computed, if the facts do not change."""

from collections.abc import Iterator

from sso.perm.engine import rules
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.project_access import membership_assignments
from sso.perm.engine.records import Assignment
from sso.perm.engine.reserved_names import SECTIONS
from sso.perm.engine.time_windows import TimeWindow

NEVER_ENDS = 2**62


def valid_until(application: CompiledApplication, facts: PermissionFacts, now: int) -> int:
    """Returns the second, after ``now``, from which permissions have to be computed again: the first end of anything,
    or the begin or end of a time window.

    The end time of an assignment with a ttl moves with each evaluation, so permissions with one are valid for a second.
    """
    ends = NEVER_ENDS
    for assignment in _assignments(facts):
        if assignment.ttl:
            return now + 1
        if now < assignment.expired < ends:
            ends = assignment.expired
    for ban in facts.bans:
        if ban.until is not None and now < ban.until < ends:
            ends = ban.until
    for window in _windows(application, facts):
        ends = min(ends, window.period(now).until)
    for section in SECTIONS:
        for _, node in rules.rule_nodes(getattr(facts.own, section), section):
            expired = node.get("expired")
            if type(expired) is int and now < expired < ends:
                ends = expired
    return ends


def _windows(application: CompiledApplication, facts: PermissionFacts) -> Iterator[TimeWindow]:
    """Returns the time windows in the conditions of roles and groups that permissions may depend on."""
    yield from application.windows
    for project in (facts.home, *facts.projects):
        for group in project.groups if project is not None else ():
            yield from group.windows


def _assignments(facts: PermissionFacts) -> Iterator[Assignment]:
    yield from facts.own.roles
    for project in facts.projects:
        for _, _, assignment in membership_assignments(project):
            yield assignment
