"""Expired rows are deleted."""

from structlog.testing import capture_logs

from sso.db import cleanup
from sso.services import Services
from tests.kit.builders import add_user

EXPIRED = "now() - interval '1 second'"
REFUSE = (
    """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'cannot be deleted'; END $$""",
    "CREATE TRIGGER refuse BEFORE DELETE ON browser_sessions FOR EACH ROW EXECUTE FUNCTION refuse()",
)


async def test_error_in_one_table_does_not_stop_the_others(services: Services) -> None:
    user = await add_user(services)
    run = services.database.run_sql
    for statement in (
        f"""INSERT INTO browser_sessions (digest, id, user_id, last_seen, expires)
        VALUES ('a', 'a', $1, now(), {EXPIRED})""",
        f"INSERT INTO sign_ins (id, user_id, last_used, expires) VALUES ('a', $1, now(), {EXPIRED})",
        "INSERT INTO sign_ins (id, user_id, last_used, expires) VALUES ('b', $1, now(), now() + interval '1 hour')",
        f"""INSERT INTO session_tokens (digest, user_id, kind, sign_in, expires)
        VALUES ('a', $1, 'long', 'a', {EXPIRED})""",
    ):
        await run(statement, [user.user_id])
    for statement in REFUSE:
        await run(statement, [])
    with capture_logs() as logs:
        assert await cleanup.delete_expired(services.database) == 2
    assert [(entry["event"], entry["table"]) for entry in logs] == [("cleanup.table_failed", "browser_sessions")]
    assert [row["id"] for row in await run("SELECT id FROM sign_ins", [])] == ["b"]
