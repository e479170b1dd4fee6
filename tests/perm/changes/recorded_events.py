"""The events that writes have recorded, and users for writes that concern many."""

from typing import Any

from sso.db.statement import Statement
from sso.services import Services

EVENTS = Statement("SELECT type, user_id, application_id, data FROM change_events ORDER BY id")
FORGET = Statement("DELETE FROM change_events")
ADD_USERS = Statement(
    """INSERT INTO users (user_id, login, login_key)
    SELECT CAST(5000000 + n AS text), 'u' || n || '@example.com', 'u' || n || '@example.com'
    FROM generate_series(CAST(:first AS int), CAST(:last AS int)) n"""
)


async def events(services: Services) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await services.database.rows(EVENTS)]
