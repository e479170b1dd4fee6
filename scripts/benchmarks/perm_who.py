"""Measures "who may do this?" with a million users: the first page, by what gives the rule to its holders.

10,000 users have a role, 10,000 others a tag that a condition asks for, and 10,000 an entry of their own among 100,000
records; and everybody has a default role.
"""

import time
from typing import Any

from scripts.benchmarks.perm_work import PermissionTarget, running_target
from scripts.benchmarks.report import Steps, arguments, cpu_seconds, process_tree, progress, show
from tests.kit import postgres
from tests.perm.endpoints.conftest import FACTOR

USERS, HOLDERS, RECORDS = 1_000_000, 10_000, 100_000
FIRST = 100_000_000
ROUNDS = 7
WAYS = {"role": "by_role.use", "tag": "by_tag.use", "own entry": "by_entry.use", "default role": "by_default.use"}
_QUICK = "SET session_replication_role = replica; SET synchronous_commit = off;"
_USERS = f"""INSERT INTO users (user_id, login, login_key, tags)
    SELECT CAST({FIRST} + n AS text), name, name,
        CASE n % {USERS // HOLDERS} WHEN 1 THEN '{{{{tester}}}}'::text[] ELSE '{{{{}}}}' END
    FROM generate_series({{begin}}, {{end}}) AS n, CAST('w' || n || '@example.com' AS text) AS name"""
_ASSIGNMENTS = f"""INSERT INTO role_assignments (user_id, application_id, name, position)
    SELECT CAST({FIRST} + n * {USERS // HOLDERS} AS text), {{application_id}}, 'holder', 0
    FROM generate_series(0, {HOLDERS - 1}) AS n"""
_RECORDS = f"""INSERT INTO user_records (user_id, application_id, private_data)
    SELECT CAST({FIRST} + n * {USERS // RECORDS} AS text), {{application_id}},
        CASE n % {RECORDS // HOLDERS} WHEN 1 THEN '{{{{"by_entry": {{{{"use": {{{{"value": true}}}}}}}}}}}}'::jsonb
        ELSE '{{{{"settings": {{{{"volume": {{{{"value": 3}}}}}}}}}}}}' END
    FROM generate_series(0, {RECORDS - 1}) AS n"""


def fill(dsn: str, application_id: int) -> None:
    """Without the index of the console's search, which takes longer than all the rest."""
    postgres.execute(dsn, "DROP INDEX ix_users_search")
    for begin in range(0, USERS, USERS // 10):
        progress(f"filling the database: {begin:,} of {USERS:,} users …")
        postgres.execute(dsn, _QUICK + _USERS.format(begin=begin, end=begin + USERS // 10 - 1))
    for statement in (_ASSIGNMENTS, _RECORDS):
        postgres.execute(dsn, _QUICK + statement.format(application_id=application_id))
    postgres.execute(dsn, "VACUUM (ANALYZE) users, role_assignments, user_records")


def _save_roles(target: PermissionTarget) -> None:
    def role(name: str, area: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "meta": {"private_data": {area: {"use": {"value": True}}}}, **more}

    roles = (
        role("holder", "by_role"),
        role("tester", "by_tag", condition={"tag": "tester"}),
        role("everybody", "by_default", default=True),
    )
    for one in roles:
        saved = target.studio.root.call("roles", action="save", application_id=target.application_id, data=one)
        assert saved.status == 200, saved


def who(target: PermissionTarget, database: postgres.Postgres, way: str) -> dict[str, Any]:
    """The first page of 50 users: the time until it is answered, and the processor time of worker and database."""
    headers = {"Authorization": f"Bearer {target.studio.root.jwt}", "Factor": FACTOR}
    path = f"/api/admin/applications/{target.application_id}/who?rule={WAYS[way]}"
    workers, took = target.server.workers(), []
    before, database_before = 0.0, {}
    for number in range(ROUNDS + 2):
        if number == 2:  # the first ones open connections and compile the application
            before = cpu_seconds(workers)
            database_before = {pid: cpu_seconds([pid]) for pid in process_tree(database.pid())}
        started = time.perf_counter()
        response = target.studio.client.get(path, headers=headers, timeout=120)
        took.append(time.perf_counter() - started)
        assert len(response.json()["data"]) == 50, response.text
    in_database = sum(max(0.0, cpu_seconds([pid]) - was) for pid, was in database_before.items())
    return {
        "what": f"who, by {way}",
        "us": (cpu_seconds(workers) - before) / ROUNDS * 1e6,
        "database us": in_database / ROUNDS * 1e6,
        "seconds": sorted(took[2:])[ROUNDS // 2],
    }


def reverse_questions(
    target: PermissionTarget, database: postgres.Postgres, dsn: str, steps: Steps
) -> list[dict[str, Any]]:
    steps.next(f"who may do this, {USERS:,} users")
    _save_roles(target)
    fill(dsn, target.application_id)
    return [who(target, database, way) for way in WAYS]


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    with postgres.running() as database:
        dsn = database.fresh()
        with running_target(dsn) as target:
            show(reverse_questions(target, database, dsn, Steps(1)), options.out)


if __name__ == "__main__":
    main()
