"""Expired rows are deleted."""

import pytest
from structlog.testing import capture_logs

from sso.db import cleanup
from sso.db.errors import LockTimeout
from sso.services import Services
from tests.kit.builders import add_user

EXPIRED = "now() - interval '1 second'"
# A trigger that refuses to delete rows of a table, with an error of this SQLSTATE.
REFUSE = (
    """CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE 'cannot be deleted' USING ERRCODE = TG_ARGV[0]; END $$""",
    "CREATE TRIGGER refuse BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse('{state}')",
)
STATEMENT_TIMEOUT, LOCK_TIMEOUT, OTHER = "57014", "55P03", "P0001"


async def insert_expired(services: Services) -> None:
    user = await add_user(services)
    for statement in (
        f"""INSERT INTO browser_sessions (digest, id, user_id, last_seen, expires)
        VALUES ('a', 'a', $1, now(), {EXPIRED})""",
        f"INSERT INTO sign_ins (id, user_id, last_used, expires) VALUES ('a', $1, now(), {EXPIRED})",
        "INSERT INTO sign_ins (id, user_id, last_used, expires) VALUES ('b', $1, now(), now() + interval '1 hour')",
        f"""INSERT INTO session_tokens (digest, user_id, kind, sign_in, expires)
        VALUES ('a', $1, 'long', 'a', {EXPIRED})""",
    ):
        await services.database.run_sql(statement, [user.user_id])


async def refuse_deletion(services: Services, **states: str) -> None:
    for table, state in states.items():
        for statement in REFUSE:
            await services.database.run_sql(statement.format(table=table, state=state), [])


async def remaining_sign_ins(services: Services) -> list[str]:
    return [row["id"] for row in await services.database.run_sql("SELECT id FROM sign_ins ORDER BY id", [])]


@pytest.mark.parametrize("state", [STATEMENT_TIMEOUT, LOCK_TIMEOUT, OTHER])
async def test_error_in_one_table_does_not_stop_the_others(services: Services, state: str) -> None:
    await insert_expired(services)
    await refuse_deletion(services, browser_sessions=state)
    with capture_logs() as logs:
        assert await cleanup.delete_expired(services.database) == 2
    assert [(entry["event"], entry["table"]) for entry in logs] == [("cleanup.table_failed", "browser_sessions")]
    assert await remaining_sign_ins(services) == ["b"]


async def test_cleanup_continues_after_failures_of_several_tables_but_not_of_two_in_a_row(services: Services) -> None:
    await insert_expired(services)
    await refuse_deletion(services, browser_sessions=LOCK_TIMEOUT, session_tokens=STATEMENT_TIMEOUT)
    assert await cleanup.delete_expired(services.database) == 1
    assert await remaining_sign_ins(services) == ["b"]
    await services.database.run_sql("UPDATE sign_ins SET expires = now()", [])
    assert cleanup.TABLES.index("sign_ins") == cleanup.TABLES.index("session_tokens") + 1
    await refuse_deletion(services, sign_ins=LOCK_TIMEOUT)
    with capture_logs() as logs, pytest.raises(LockTimeout):
        await cleanup.delete_expired(services.database)
    assert [entry["table"] for entry in logs] == ["browser_sessions", "session_tokens"]


async def test_clients_that_registered_themselves_and_are_not_used_are_deleted(services: Services) -> None:
    user = await add_user(services)
    run = services.database.run_sql
    clients = {
        "new": (1, True), "used": (40, True), "unused": (40, True), "waits": (3, False), "forgotten": (8, False),
    }  # fmt: skip
    for client_id, (days, approved) in clients.items():
        await run(
            """INSERT INTO oauth_clients (client_id, registered_by, approved, registration_used)
            VALUES ($1, 'open', $2, now() - make_interval(days => $3))""",
            [client_id, approved, days],
        )
    await run("INSERT INTO oauth_clients (client_id, created) VALUES ('ours', now() - interval '900 days')", [])
    await run(
        """INSERT INTO oauth_grants (id, client_id, user_id, redirect_uri, scopes, auth_time, issued, ends,
            last_used, expires)
        VALUES ('g', 'used', $1, '', '{openid}', 0, 0, 0, now(), now() + interval '1 hour')""",
        [user.user_id],
    )
    await cleanup.delete_expired(services.database, client_days=30)
    rows = await run("SELECT client_id FROM oauth_clients ORDER BY client_id", [])
    assert [row["client_id"] for row in rows] == ["new", "ours", "used", "waits"]
    # A use is remembered: the client stays when its last grant has ended.
    await run("DELETE FROM oauth_grants", [])
    await cleanup.delete_expired(services.database, client_days=30)
    assert await run("SELECT client_id FROM oauth_clients WHERE client_id = 'used'", [])
