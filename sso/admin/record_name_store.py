"""The names of records by their ids, for pages that show people and records by name."""

from collections.abc import Iterable, Mapping

from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.engine.reserved_names import is_application_key

MAX_IDS = 500  # of one kind
_NAMES = Statement(
    """SELECT 'user' AS kind, user_id AS id, coalesce(nullif(nick, ''), login) AS name, login AS detail
        FROM users WHERE user_id = ANY (CAST(:user AS text[]))
    UNION ALL SELECT 'application', CAST(application_id AS text), name, ''
        FROM applications WHERE application_id = ANY (CAST(:application AS int[]))
    UNION ALL SELECT 'project', id, coalesce(nullif(display_name, ''), title), ''
        FROM projects WHERE id = ANY (CAST(:project AS text[]))
    UNION ALL SELECT 'group', id, title, '' FROM user_groups WHERE id = ANY (CAST(:group AS text[]))
    UNION ALL SELECT 'client', client_id, name, ''
        FROM oauth_clients WHERE client_id = ANY (CAST(:client AS text[]))
    UNION ALL SELECT 'identity_provider', provider_id, name, ''
        FROM identity_providers WHERE provider_id = ANY (CAST(:identity_provider AS text[]))
    UNION ALL SELECT 'webhook', webhook_id, url, '' FROM webhooks WHERE webhook_id = ANY (CAST(:webhook AS text[]))"""
)
KINDS = ("user", "application", "project", "group", "client", "identity_provider", "webhook")


class RecordNameStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, ids: Mapping[str, Iterable[str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """Returns the name of each record, and of a user also the e-mail address, by kind and id: one statement.

        Records that do not exist are left out, and so is what exceeds MAX_IDS.
        """
        wanted = {kind: sorted({id for id in ids.get(kind, ()) if id and "\0" not in id})[:MAX_IDS] for kind in KINDS}
        if not any(wanted.values()):
            return {}
        applications = [int(key) for key in wanted["application"] if is_application_key(key)]
        rows = await self._database.rows(_NAMES, **{**wanted, "application": applications})
        return {(row["kind"], row["id"]): (row["name"] or row["id"], row["detail"]) for row in rows}
