"""Tags, purchases and e-mail domains that users have, as suggestions: the most common ones, and those of some users.

The work does not depend on the number of users. PostgreSQL counts common values itself (ANALYZE); a new database has no
such statistics yet, so some users are read as well.
"""

from collections.abc import Iterable

from sso.db.statement import Statement
from sso.db.transaction import Runner

MAX_SUGGESTIONS = 30  # of each kind
SAMPLE = 300  # users
DOMAIN_INDEX = "ix_users_domain"  # an index on an expression, so that there are statistics of it
_KINDS = {"tags": "tag", "purchases": "purchase", DOMAIN_INDEX: "domain"}  # by column or index

_COMMON = Statement(
    f"""SELECT CASE tablename WHEN '{DOMAIN_INDEX}' THEN tablename ELSE attname END AS name,
        CAST(CASE tablename WHEN '{DOMAIN_INDEX}' THEN CAST(most_common_vals AS text)
            ELSE CAST(most_common_elems AS text) END AS text[]) AS common
    FROM pg_stats WHERE schemaname = current_schema()
        AND ((tablename = 'users' AND attname IN ('tags', 'purchases')) OR tablename = '{DOMAIN_INDEX}')"""
)
_SOME = Statement(
    """SELECT tags, purchases, substring(login_key FROM '@([^@]*)$') AS domain FROM users
    ORDER BY user_id DESC LIMIT :limit"""
)


async def suggest_attributes(runner: Runner, search: str) -> dict[str, list[str]]:
    """Returns values that contain the text, by the member of a condition that compares them."""
    found: dict[str, dict[str, None]] = {kind: {} for kind in _KINDS.values()}
    for row in await runner.rows(_COMMON):
        found[_KINDS[row["name"]]].update(dict.fromkeys(row["common"] or ()))
    for row in await runner.rows(_SOME, limit=SAMPLE):
        found["tag"].update(dict.fromkeys(row["tags"]))
        found["purchase"].update(dict.fromkeys(row["purchases"]))
        if row["domain"]:
            found["domain"][row["domain"]] = None
    return {kind: _containing(values, search.casefold()) for kind, values in found.items()}


def _containing(values: Iterable[str], text: str) -> list[str]:
    return [value for value in values if text in value.casefold()][:MAX_SUGGESTIONS]
