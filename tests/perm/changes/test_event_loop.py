"""The evaluation of a write does not stop other requests: at the largest application, and of a large record."""

import threading
import time
from types import ModuleType
from typing import Any

import orjson
import pytest
import trio

from sso.audit.trail import AuditActor
from sso.core.net import parse_address
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.caller import Caller
from sso.perm.changes import last_administrators, record_comparison, state_comparison
from sso.perm.changes.evaluation import MAX_WORK
from sso.perm.changes.scope import Scope
from sso.perm.changes.size_limits import MAX_CONDITION_NODES
from sso.perm.changes.writer import PermissionWriter, WriteMode
from sso.perm.engine.held_rules import HeldRules
from sso.perm.engine.records import Assignment, RoleRecord
from sso.perm.input.schema import MAX_ROLES
from sso.perm.operations.user_data import UserDataChanges
from sso.perm.operations.writes import ManagementContext
from sso.perm.stores import facts_decoding, project_state
from sso.perm.stores.compilation import LARGE_BYTES
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.locks import lock_application
from sso.perm.stores.memberships import read_membership
from sso.perm.stores.project_state import MANY_MEMBERS
from sso.perm.stores.roles import put_role, read_roles
from sso.perm.stores.user_data import save_record
from sso.services import Services
from tests.state.studio import BOB, apply, studio

USERS = 20
LONGEST_STEP_S = 0.1  # of CPU time; the longest takes 0.001 s, and 0.9 s without threads
_SETUP = (
    "INSERT INTO applications (application_id, name, assertions) OVERRIDING SYSTEM VALUE VALUES"
    """ (10, 'large', '["only r1 may r1"]')""",
    f"""INSERT INTO roles (application_id, name, meta, condition)
    SELECT 10, 'r' || n, jsonb_build_object('private_data', (
            SELECT jsonb_object_agg('r' || (n + k), '{{"value": true}}'::jsonb) FROM generate_series(0, 9) AS k)),
        jsonb_build_object('or', '[{{"tag": "many"}}]'::jsonb || (
            SELECT jsonb_agg(jsonb_build_object('domain', 'd' || n || '-' || k || '.example'))
            FROM generate_series(1, {MAX_CONDITION_NODES // MAX_ROLES - 2}) AS k))
    FROM generate_series(1, {MAX_ROLES}) AS n""",
    f"""INSERT INTO users (user_id, login, login_key, tags)
    SELECT CAST(n AS text), 'u' || n || '@x.org', 'u' || n || '@x.org', CASE n % 2 WHEN 0 THEN '{{many}}' END::text[]
    FROM generate_series(1, {USERS}) AS n""",
)


class LongestStep(trio.abc.Instrument):
    """Measures the CPU time of the steps of tasks on the event loop."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = time.thread_time()

    def before_task_step(self, _task: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, _task: trio.lowlevel.Task) -> None:
        self.seconds = max(self.seconds, time.thread_time() - self._began)


async def _set_up(tx: Transaction) -> None:
    for sql in _SETUP:
        await tx.value(Statement(sql.replace("THEN '{many}' END", "THEN '{many}' ELSE '{}' END")))


async def _save(tx: Transaction) -> Any:
    meta = {"private_data": {"new": {"value": True}}}
    await put_role(tx, 10, RoleRecord("r2", meta, condition={"everyone": True}))


async def test_write_at_the_largest_application_leaves_the_event_loop_to_others(services: Services) -> None:
    database: Database = services.database
    await database.transaction(_set_up)
    writer = PermissionWriter(database, StoredFacts(database))
    step = LongestStep()
    trio.lowlevel.add_instrument(step)
    try:
        for dry_run in (True, False):
            written = await writer.write(WriteMode(dry_run, override=True), Scope.role(10, "r2"), _save)
            assert len(written.impact.changes) == USERS
    finally:
        trio.lowlevel.remove_instrument(step)
    assert step.seconds < LONGEST_STEP_S


async def test_write_of_a_large_record_leaves_the_event_loop_to_others(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application is small."""
    database: Database = services.database
    await database.transaction(_add_small)
    comparison = (record_comparison, "compute_permissions"), (record_comparison, "as_list")
    functions = (facts_decoding, "decode_facts"), *comparison
    threads = {name: _record_threads(monkeypatch, module, name) for module, name in functions}
    writer = PermissionWriter(database, StoredFacts(database))
    for _ in range(2):  # the second time, the record is large before the write as well
        for values in threads.values():
            values.clear()
        written = await writer.write(WriteMode(override=True), Scope.record("1", 11), _save_large_record)
    assert len(written.impact.changes) == 0
    for name, values in threads.items():
        assert len(values) == 2, name
        assert threading.main_thread() not in values, name


async def _add_small(tx: Transaction) -> None:
    for sql in (
        "INSERT INTO applications (application_id, name) OVERRIDING SYSTEM VALUE VALUES (11, 'small')",
        "INSERT INTO users (user_id, login, login_key) VALUES ('1', 'u1@x.org', 'u1@x.org')",
    ):
        await tx.value(Statement(sql))


async def _save_large_record(tx: Transaction) -> None:
    row = await lock_application(tx, 11)
    rules = {f"rule{number}": {"value": True} for number in range(LARGE_BYTES // 10)}
    await save_record(tx, AuditActor(), "1", row, {}, {"private_data": rules}, None)


async def test_save_of_a_project_with_many_members_leaves_the_event_loop_to_others(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = services.database
    await apply(services, studio())
    await database.transaction(_add_members)
    functions = (project_state, "_by_project"), (last_administrators, "_possible_administrators")
    threads = [_record_threads(monkeypatch, module, name) for module, name in (*functions, (HeldRules, "cover_role"))]
    bob = Caller(BOB, parse_address("127.0.0.1"), now=int(database.clock.now()), has_factor=True)
    members = (await read_membership(database, "red_dawn"))["users"][:-1]
    operations = services.permissions.operations.members
    await operations.save(ManagementContext(bob), "red_dawn", {"users": members})
    for values in threads:
        assert values
        assert threading.main_thread() not in values


async def _add_members(tx: Transaction) -> None:
    for sql in (
        f"""INSERT INTO users (user_id, login, login_key)
        SELECT CAST(n AS text), 'm' || n || '@x.org', 'm' || n || '@x.org'
        FROM generate_series(10000, {10000 + MANY_MEMBERS}) AS n""",
        f"""INSERT INTO project_members (project_id, user_id, level, role)
        SELECT 'red_dawn', CAST(n AS text), 'project', 'viewer'
        FROM generate_series(10000, {10000 + MANY_MEMBERS}) AS n""",
        f"""INSERT INTO project_members (project_id, user_id, level, role)
        VALUES ('red_dawn', '{BOB}', 'project', 'admin') ON CONFLICT DO NOTHING""",
    ):
        await tx.value(Statement(sql))


def _record_threads(monkeypatch: pytest.MonkeyPatch, module: ModuleType | type, name: str) -> list[threading.Thread]:
    """Returns the threads that call this function of the module."""
    threads: list[threading.Thread] = []
    function = getattr(module, name)

    def call(*arguments: object) -> object:
        threads.append(threading.current_thread())
        return function(*arguments)

    monkeypatch.setattr(module, name, call)
    return threads


@pytest.fixture
def decoded_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of large JSON that was decoded on the event loop. Connections that are opened later use it, too."""
    lengths: list[int] = []
    loads = orjson.loads

    def loads_seen(text: str | bytes) -> Any:
        if len(text) > LARGE_BYTES and threading.current_thread() is threading.main_thread():
            lengths.append(len(text))
        return loads(text)

    monkeypatch.setattr(orjson, "loads", loads_seen)
    return lengths


_LARGE_TREE = f"""(SELECT jsonb_object_agg('rule' || n, '{{"value": true}}'::jsonb)
    FROM generate_series(1, {LARGE_BYTES // 10}) AS n)"""


async def test_save_at_a_large_application_decodes_its_schema_and_roles_in_a_thread(
    decoded_on_the_loop: list[int], services: Services
) -> None:
    database, operations = services.database, services.permissions.operations
    await database.transaction(_add_small)
    await database.transaction(_make_large)
    operator = Caller("", None, now=int(database.clock.now()), has_factor=True, is_operator=True)
    context = ManagementContext(operator)
    await operations.roles.save(context, 11, {"name": "small", "user_limit": 3})
    data = UserDataChanges({"public_data": {"a": {"value": 1}}}, (Assignment("small"),), is_large=False)
    await operations.user_data.save(context, "1", 11, data)
    assert (await read_roles(database, 11))["small"].user_limit == 3
    await database.value(Statement(f"UPDATE user_records SET private_data = {_LARGE_TREE}"))
    deleted = await operations.roles.delete(ManagementContext(operator, dry_run=True), 11, "small")
    assert deleted.is_dry_run
    assert decoded_on_the_loop == []


async def _make_large(tx: Transaction) -> None:
    for sql in (
        f"""INSERT INTO roles (application_id, name, meta)
        SELECT 11, 'large', jsonb_build_object('private_data', {_LARGE_TREE})""",
        f"UPDATE applications SET private_data = {_LARGE_TREE}, revision = 2 WHERE application_id = 11",
    ):
        await tx.value(Statement(sql))


async def test_write_that_would_evaluate_for_long_evaluates_some_users_and_says_so(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an assertion, users are evaluated one by one."""
    monkeypatch.setattr(state_comparison, "MAX_WORK", MAX_WORK // 20)
    database: Database = services.database
    await database.transaction(_set_up)
    writer = PermissionWriter(database, StoredFacts(database))
    written = await writer.write(WriteMode(dry_run=True, override=True), Scope.role(10, "r2"), _save)
    assert written.impact.unevaluated == {10: USERS}
    assert 0 < len(written.impact.changes) < USERS
