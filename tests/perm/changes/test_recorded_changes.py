"""What writes record for the change stream: one event for each effective change, one for a whole application."""

from typing import Any

import pytest

from sso.audit.trail import AuditActor
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes import state_comparison
from sso.perm.changes.impact import MAX_EXAMPLES, MAX_LISTED_BYTES
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import WRITE, WriteMode
from sso.perm.stores.builtin_roles import complete_schema
from sso.perm.stores.locks import lock_application
from sso.perm.stores.roles import read_roles
from sso.perm.stores.schemas import save_schema
from sso.perm.stores.user_data import save_record
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from tests.perm.changes.recorded_events import ADD_USERS, FORGET, events

APP, OTHER_APP = 60, 61
SET_LOGIN = Statement("UPDATE users SET login = :login, login_key = :login WHERE user_id = '8001'")

DOCUMENT: dict[str, Any] = {
    "users": [{"user_id": "8001", "login": "ann@one.example"}],
    "applications": [
        {"application_id": APP, "name": "Tanks", "assertions": ["ann@one.example may chat.kick"]},
        {"application_id": OTHER_APP, "name": "Ships"},
    ],
    "roles": {
        str(APP): [
            {
                "name": "staff",
                "meta": {"private_data": {"chat": {"kick": {"value": True}}}},
                "condition": {"domain": "one.example"},
            }
        ]
    },
}


@pytest.fixture
async def applied(services: Services) -> Services:
    writer = services.permissions.writer
    await Applier(services.database, services.hasher, services.operations, writer=writer).apply(parse(DOCUMENT))
    await services.database.value(FORGET)
    return services


async def test_own_change_of_a_login_is_recorded_and_never_refused(applied: Services) -> None:
    async def work(tx: Transaction) -> str:
        await tx.value(SET_LOGIN, login="ann@two.example")
        return "changed"

    assert await applied.permissions.writer.write_login("8001", work) == "changed"
    lost = {"gained": [], "lost": ["private_data.chat.kick"]}
    assert await events(applied) == [("permissions_changed", "8001", APP, lost)]


async def test_change_for_too_many_users_is_one_event(applied: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 2 * MAX_EXAMPLES
    monkeypatch.setattr(state_comparison, "MAX_EXACT_USERS", most)
    await applied.database.value(ADD_USERS, first=1, last=most)

    async def work(tx: Transaction) -> None:
        row = await lock_application(tx, APP)
        schema = complete_schema(row, {"private_data": {"chat": {"read": {"value": True}}}})
        await save_schema(tx, AuditActor(), row, schema, await read_roles(tx, APP))

    dry = await applied.permissions.writer.write(WriteMode(dry_run=True), Scope.application(APP), work)
    shown = dry.impact.json()
    assert (shown["total"], shown["exact"], len(shown["users"])) == (most + 1, False, MAX_EXAMPLES)
    assert shown["users"][0]["gained"] == ["private_data.chat.read"]
    assert await events(applied) == []
    await applied.permissions.writer.write(WRITE, Scope.application(APP), work)
    [(kind, user_id, application_id, data)] = await events(applied)
    assert (kind, user_id, application_id, data) == ("application_changed", None, APP, {"users": most + 1})


@pytest.mark.parametrize(("number", "is_exact"), [(5000, False), (500, True)])
async def test_long_rules_of_one_user_are_one_event_of_the_application(
    applied: Services, number: int, is_exact: bool
) -> None:
    """Names that are nested have long paths. A replica reads the user again. A dry run lists less than 8 MB."""
    rules: dict[str, Any] = {f"r{index}": {"value": True} for index in range(number)}
    for _ in range(30):
        rules = {"a" * 64: rules}

    async def work(tx: Transaction) -> None:
        row = await lock_application(tx, OTHER_APP)
        await save_record(tx, AuditActor(), "8001", row, {}, {"private_data": rules}, None)

    scope = Scope.record("8001", OTHER_APP)
    dry = await applied.permissions.writer.write(WriteMode(dry_run=True), scope, work)
    assert (dry.impact.total, dry.impact.is_exact, len(dry.impact.changes)) == (1, is_exact, int(is_exact))
    await applied.permissions.writer.write(WRITE, scope, work)
    assert await events(applied) == [
        ("application_changed", None, OTHER_APP, {"users": 1}),
        ("facts_changed", "8001", OTHER_APP, {}),
    ]


async def test_long_rules_that_everybody_gains_are_one_event(applied: Services) -> None:
    """An event for each user would have more than 16 MB of text together."""
    users = 200
    await applied.database.value(ADD_USERS, first=1, last=users)
    rules = {f"{number:060}": {"value": True} for number in range(1000)}

    async def work(tx: Transaction) -> None:
        row = await lock_application(tx, OTHER_APP)
        schema = complete_schema(row, {"private_data": {"chat": rules}})
        await save_schema(tx, AuditActor(), row, schema, await read_roles(tx, OTHER_APP))

    dry = await applied.permissions.writer.write(WriteMode(dry_run=True), Scope.application(OTHER_APP), work)
    assert (dry.impact.total, dry.impact.is_exact) == (users + 1, False)
    assert sum(change.size for change in dry.impact.changes) < 1.1 * MAX_LISTED_BYTES
    await applied.permissions.writer.write(WRITE, Scope.application(OTHER_APP), work)
    assert await events(applied) == [("application_changed", None, OTHER_APP, {"users": users + 1})]
