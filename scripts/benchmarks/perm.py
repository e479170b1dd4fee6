"""Measures permissions: reads and checks by one worker, with few and many roles, cold and warm, the engine alone, and
writes: the dry run of a role that 10,000 users hold, and saves of one user's record. "Who may do this?" is asked with a
million users.

A user has three of N roles with conditions. The warm cost should not grow with the number of roles.
"""

from collections.abc import Callable
from time import process_time, sleep
from typing import Any

from scripts.benchmarks.perm_model import repeat
from scripts.benchmarks.perm_peers import casbin_enforcer, peer_checks
from scripts.benchmarks.perm_who import reverse_questions
from scripts.benchmarks.perm_work import (
    MET_ROLES,
    QUESTIONS,
    REQUESTS,
    PermissionTarget,
    load,
    role,
    running_target,
)
from scripts.benchmarks.perm_writes import writes
from scripts.benchmarks.report import Steps, arguments, cpu_seconds, process_tree, show
from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.records import Assignment, OwnRecord, RoleRecord, Schema
from sso.perm.engine.render import as_list_short
from sso.perm.engine.user_facts import UserFacts
from tests.kit import postgres

SIZES = (10, 100, 990)  # an application has at most 1,000 roles, and some are added later
CONNECTIONS = 32
QUESTIONS_OF = {"check 100": QUESTIONS}  # the figures are those of one question


def engine(roles: int, seconds: float) -> dict[str, Any]:
    records = [RoleRecord(**role(number)) for number in range(roles)]
    started = process_time()
    application = compile_application(10, 1, Schema(), records)
    facts = PermissionFacts(UserFacts.from_login("1", "ann@example.com"), OwnRecord(roles=(Assignment("role3"),)))
    as_list_short(compute_permissions(application, facts, 0))
    cold = process_time() - started
    ours = repeat(lambda: as_list_short(compute_permissions(application, facts, 0)), seconds)
    enforcer = casbin_enforcer(roles)
    enforcer.add_grouping_policies([["ann", f"role{number}"] for number in range(MET_ROLES)])
    theirs = repeat(lambda: enforcer.get_implicit_permissions_for_user("ann"), seconds)
    return {"what": "engine", "roles": roles, "cold ms": cold * 1e3, "us": ours * 1e6, "pycasbin us": theirs * 1e6,
            "ratio": theirs / ours}  # fmt: skip


def endpoint(target: PermissionTarget, database: postgres.Postgres, roles: int, seconds: float) -> dict[str, Any]:
    """meta/data with this many roles: cold, after a change of a role, and warm."""
    target.save_roles(roles)
    workers = target.server.workers()
    saving = _cpu_of(workers, lambda: _save_role(target))
    once = _cpu_of(workers, lambda: _save_role_and_read(target)) - saving
    return {"what": "meta/data list_short", "roles": roles, "cold ms": once * 1e3} | _warm(
        target, database, "list_short", seconds
    )


def _save_role(target: PermissionTarget) -> None:
    target.studio.root.call("roles", action="save", application_id=target.application_id, data={"name": "role0"})


def _save_role_and_read(target: PermissionTarget) -> None:
    _save_role(target)
    assert target.studio.rules_of(target.player, target.application_id)


def _cpu_of(workers: list[int], work: Callable[[], object], times: int = 10) -> float:
    before = cpu_seconds(workers)
    for _ in range(times):
        work()
    return (cpu_seconds(workers) - before) / times


def _settle(workers: list[int]) -> None:
    """Waits until the workers have passed on the changes of permissions that the last save has made."""
    for _ in range(100):
        before = cpu_seconds(workers)
        sleep(0.3)
        if cpu_seconds(workers) - before <= 0.02:
            return


def _warm(target: PermissionTarget, database: postgres.Postgres, name: str, seconds: float) -> dict[str, Any]:
    workers = target.server.workers()
    _settle(workers)
    load(target, name, CONNECTIONS, 0.5)
    before = cpu_seconds(workers)
    database_before = {pid: cpu_seconds([pid]) for pid in process_tree(database.pid())}
    tally = load(target, name, CONNECTIONS, seconds)
    used = cpu_seconds(workers) - before
    in_database = sum(max(0.0, cpu_seconds([pid]) - was) for pid, was in database_before.items())
    count = len(tally.took) * QUESTIONS_OF.get(name, 1)
    return {
        "us": used / count * 1e6,
        "database us": in_database / count * 1e6,
        "per second": count / tally.seconds,
    }


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    rows: list[dict[str, Any]] = []
    steps = Steps(2 * len(SIZES) + len(REQUESTS) + 5)
    for roles in SIZES:
        steps.next(f"engine, {roles} roles")
        rows.append(engine(roles, options.seconds))
    with postgres.running() as database, running_target(dsn := database.fresh()) as target:
        for roles in SIZES:
            steps.next(f"meta/data, {roles} roles")
            rows.append(endpoint(target, database, roles, options.seconds))
        target.save_roles(10)
        for name in REQUESTS:
            steps.next(name)
            rows.append({"what": name, "roles": 10} | _warm(target, database, name, options.seconds))
        target.save_entries()
        steps.next("400 entries")
        rows.append({"what": "list_short, 400 entries"} | _warm(target, database, "list_short", options.seconds))
        steps.next("checks by other engines")
        rows += peer_checks(target, database, options.seconds)
        rows += writes(target.server, target.studio, steps)
        rows += reverse_questions(target, database, dsn, steps)
    names = ("what", "roles", "cold ms", "us", "database us", "per second", "us of 50", "50s per second", "seconds",
             "pycasbin us", "ratio", "note")  # fmt: skip
    show([{name: row.get(name) for name in names} for row in rows], options.out)


if __name__ == "__main__":
    main()
