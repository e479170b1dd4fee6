"""The writer itself keeps the last administrators, whatever a write does and whoever calls it."""

from collections.abc import Awaitable, Callable

import pytest

from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.last_administrators import LastAdministrator
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import WRITE
from sso.services import Services
from tests.state.studio import ANN, BOB, apply, studio

_DISABLED = Statement("SELECT user_id FROM users WHERE disabled")


def statement(sql: str) -> Callable[[Transaction], Awaitable[None]]:
    async def work(tx: Transaction) -> None:
        await tx.rows(Statement(sql, name="tests.work"))

    return work


REFUSED = (
    (Scope.project("red_dawn"), "DELETE FROM project_members", "the project would have no administrator"),
    (
        Scope.project("red_dawn"),
        'UPDATE projects SET settings = \'{"allowed_domains": ["other.example"]}\'',
        "the project would have no administrator",
    ),
    (
        Scope.project("red_dawn"),
        "UPDATE project_members SET expired = 4102444800 WHERE role = 'admin'",
        "whose role does not end",
    ),
    (
        Scope.project("red_dawn"),
        """WITH removed AS (DELETE FROM group_users) UPDATE user_groups SET conditions =
            '[{"title": "w", "condition": {"domain": "example.com", "time": {"until": 4102444800}}}]'""",
        "whose role does not end",
    ),
    (Scope.role(1, "admin", removed=True), "DELETE FROM project_members", "a project would have no administrator"),
    (Scope.record(ANN, 1), "DELETE FROM role_assignments", "only administrator of the service"),
    (Scope.account(ANN), f"UPDATE users SET disabled = true WHERE user_id = '{ANN}'", "only administrator"),
)


async def test_writer_refuses_to_take_the_last_administrator(services: Services) -> None:
    await apply(services, studio())
    for scope, sql, text in REFUSED:
        with pytest.raises(LastAdministrator, match=text):
            await services.permissions.writer.write(WRITE, scope, statement(sql))
    assert await services.database.rows(_DISABLED) == []


async def test_writer_disables_other_users_and_lets_a_write_replace_an_administrator(services: Services) -> None:
    await apply(services, studio())
    replace = statement(f"UPDATE project_members SET user_id = '{BOB}' WHERE role = 'admin'")
    await services.permissions.writer.write(WRITE, Scope.project("red_dawn"), replace)
    undo = statement(f"UPDATE project_members SET user_id = '{ANN}' WHERE role = 'admin'")
    await services.permissions.writer.write(WRITE, Scope.project("red_dawn"), undo)
    disable = statement(f"UPDATE users SET disabled = true WHERE user_id = '{BOB}'")
    await services.permissions.writer.write(WRITE, Scope.account(BOB), disable)
    assert [row["user_id"] for row in await services.database.rows(_DISABLED)] == [BOB]
