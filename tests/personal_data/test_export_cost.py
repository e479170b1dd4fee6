"""What an export of personal data costs: it reads rows by index, one export at a time, and its size is bounded."""

from typing import Any

import orjson
import pytest
import trio

from sso.accounts.user_store import create_user
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.personal_data import export
from sso.personal_data.export import export_user
from sso.services import Services
from tests.kit.builders import add_user

OTHERS = 20_000  # entries of other users in the audit trail
FILL_AUDIT = Statement(
    """INSERT INTO audit (user_id, operation, target, application_id)
    SELECT '77' || n % 50, (ARRAY['user.update', 'permissions.save', 'group.save'])[n % 3 + 1], '9/88' || n % 50, 9
    FROM generate_series(1, CAST(:others AS int)) n"""
)
OWN_AUDIT = Statement(
    """INSERT INTO audit (user_id, operation, target, application_id)
    VALUES ('1', 'user.update', :user_id, NULL), ('1', 'permissions.save', '9/' || :user_id, 9),
        (:user_id, 'group.save', 'g1', NULL), (:user_id, 'permissions.save', '9/' || :user_id, 9),
        ('1', 'group.save', :user_id, NULL)"""
)
ANALYZE = Statement("ANALYZE audit")
VERSIONS = Statement(
    """INSERT INTO permission_versions (commit_id, kind, owner, key, image)
    SELECT 1000 + n, 'user_records', :user_id, '9', jsonb_build_object('text', repeat('long', 250000))
    FROM generate_series(1, 40) n"""
)
COMMITS = Statement("INSERT INTO permission_commits (id) OVERRIDING SYSTEM VALUE SELECT generate_series(1001, 1040)")


@pytest.fixture
async def user_id(services: Services) -> str:
    user = await create_user(services.database, "ann@example.com", None, "Ann", "en", email_verified=True)
    assert user is not None
    return user.user_id


def rows_read(plan: dict[str, Any]) -> int:
    """Returns how many rows the scans of the audit trail have read."""
    own = 0
    if plan.get("Relation Name") == "audit":
        own = plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
    return own + sum(rows_read(part) for part in plan.get("Plans", []))


async def test_export_reads_only_its_own_entries_of_the_audit_trail(
    services: Services, user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = services.database
    await database.value(FILL_AUDIT, others=OTHERS)
    await database.value(OWN_AUDIT, user_id=user_id)
    await database.value(ANALYZE)
    read: list[int] = []
    run = Transaction.row

    async def explain(tx: Transaction, statement: Statement, **values: Any) -> Any:
        if "FROM audit" in statement.text:
            explained = await run(tx, Statement(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}"), **values)
            assert explained is not None
            read.append(rows_read(orjson.loads(explained[0])[0]["Plan"]))
        return await run(tx, statement, **values)

    monkeypatch.setattr(Transaction, "row", explain)
    document = orjson.loads(await export_user(database, user_id))
    assert [(entry["operation"], entry["is_own"]) for entry in document["audit"]] == [
        ("permissions.save", True),
        ("group.save", False),
        ("permissions.save", True),
        ("user.update", True),
        ("user.create", True),
    ]
    assert 0 < sum(read) < 100, read


async def test_one_export_runs_at_a_time(services: Services, user_id: str) -> None:
    """Each of several exports would hold a connection that logins need."""
    database = services.database
    busy: list[int] = []

    async def count(tx: Transaction, *_: Any) -> bytes:
        await tx.value(Statement("SELECT pg_sleep(0.01)"))
        busy.append(database.busy_connections)
        return b""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "_export_audited", count)
        async with trio.open_nursery() as nursery:
            for number in range(database.pool_size * 2):
                nursery.start_soon(export_user, database, str(number))
    assert max(busy) == 1


async def test_size_of_an_export_is_bounded(database: Database, services: Services, user_id: str) -> None:
    await database.value(COMMITS)
    await database.value(VERSIONS, user_id=user_id)
    text = await export_user(database, user_id)
    assert len(text) < 10_000_000
    document = orjson.loads(text)
    assert 1 <= len(document["permissions"]["history"]) < 40
    assert document["incomplete"] == ["permission_history"]


async def test_merged_users_share_the_size_of_an_export(
    database: Database, services: Services, user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "MAX_MERGED_USERS", 2)
    merged = sorted([(await add_user(services)).user_id for _ in range(3)])
    await database.run_sql("UPDATE users SET merged_into = $1 WHERE user_id = ANY ($2)", [user_id, merged])
    await database.value(COMMITS)
    for owner in (user_id, *merged):
        await database.value(VERSIONS, user_id=owner)
    text = await export_user(database, user_id)
    assert len(text) < 10_000_000
    document = orjson.loads(text)
    assert document["incomplete"] == ["permission_history", "merged_users"]
    assert [one["account"]["user_id"] for one in document["merged_users"]] == merged[:2]
    assert [one["incomplete"] for one in document["merged_users"]] == [["permission_history"]] * 2
