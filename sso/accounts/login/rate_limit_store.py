"""The counters of login attempts in the database. Concurrent attempts share a statement."""

from typing import Any, NamedTuple

from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.rate_limit import count_events
from sso.db.statement import Statement
from sso.db.transaction import Row

# A key is NULL if its limit is off. If there is no user of the account, the row has a neighbour in the order of logins:
# reading a row takes time, and the time must not tell whether the user exists.
_ADMIT = BatchStatement(
    """SELECT item.n, u.*, (
        SELECT extract(epoch FROM max(blocked_until) - now()) FROM throttle
        WHERE key IN (item.account_key, item.logins_key, item.address_key, item.site_key) AND blocked_until > now()
    ) AS wait
    FROM {items} LEFT JOIN LATERAL (
        (SELECT * FROM users WHERE login_key >= item.account ORDER BY login_key LIMIT 1)
        UNION ALL (SELECT * FROM users WHERE login_key < item.account ORDER BY login_key DESC LIMIT 1)
        LIMIT 1
    ) u ON true""",
    columns={
        "account": "text",
        "account_key": "bytea",
        "logins_key": "bytea",
        "address_key": "bytea",
        "site_key": "bytea",
    },
)
# Rows are locked in key order to avoid deadlocks.
_LOCKED = "SELECT key, blocked_until FROM throttle WHERE key = ANY ({keys}) ORDER BY key FOR UPDATE"
_COUNTERS = """SELECT * FROM unnest(CAST(:keys AS bytea[]), CAST(:limits AS int[]), CAST(:backoffs AS bool[]))
        AS counter (key, max_events, backoff)"""
# If one counter of the attempt is blocked, none is charged. A counter that has no row yet cannot be locked: if a
# concurrent attempt creates and blocks it first, the WHERE clause leaves it alone, and this attempt counts as blocked.
_CHARGE = Statement(
    f"""WITH counters AS (
        {_COUNTERS}
    ), blocked AS (
        SELECT extract(epoch FROM max(blocked_until) - now()) AS wait
        FROM ({_LOCKED.format(keys="CAST(:keys AS bytea[])")}) locked WHERE blocked_until > now()
    ), events AS (
        SELECT key, 1 AS added, max_events, CAST(NULL AS float) AS block_s, backoff
        FROM counters WHERE (SELECT wait FROM blocked) IS NULL
    ), charged AS (
        {count_events("events")} WHERE t.blocked_until <= now() RETURNING key
    )
    SELECT CASE WHEN wait IS NOT NULL THEN wait
                WHEN (SELECT count(*) FROM charged) < (SELECT count(*) FROM counters) THEN 0 END
    FROM blocked"""
)
# Takes back the charge of a correct attempt: the counter of the account is deleted, the others lose one event.
_REFUND = Statement(
    f"""WITH counters AS (
        {_COUNTERS}
    ), locked AS (
        {_LOCKED.format(keys="CAST(:keys AS bytea[])")}
    ), cleared AS (
        DELETE FROM throttle WHERE key = ANY (ARRAY(SELECT key FROM locked JOIN counters USING (key) WHERE backoff))
    )
    UPDATE throttle t SET failures = greatest(failures - 1, 0), blocked_until = CASE
        WHEN failures <= max_events THEN '-infinity' ELSE blocked_until END
    FROM counters WHERE NOT counters.backoff AND t.key = counters.key
        AND t.key = ANY (ARRAY(SELECT key FROM locked))"""
)
_SUCCESS_KEYS = """ARRAY(
            SELECT account_key FROM valid_items UNION SELECT address_key FROM valid_items
            UNION SELECT site_key FROM valid_items
        )"""
# CTEs that follow ``valid_items``, attempts with a correct password. Unless one of its counters is blocked, an attempt
# counts as a login of its account, and with ``clears`` it deletes the account's counter of failures. ``attempts`` has
# ``wait``: the seconds for which a counter is blocked, or NULL.
COUNT_SUCCESSES = f""", locked AS (
        {_LOCKED.format(keys=_SUCCESS_KEYS)}
    ), attempts AS (
        SELECT valid_items.*, account.key AS failures_key, CASE WHEN until > now() THEN
            extract(epoch FROM until - now()) END AS wait
        FROM valid_items LEFT JOIN locked account ON account.key = account_key
        LEFT JOIN locked address ON address.key = address_key LEFT JOIN locked site ON site.key = site_key
        CROSS JOIN LATERAL (
            SELECT greatest(account.blocked_until, address.blocked_until, site.blocked_until) AS until
        ) block
    ), cleared AS (
        DELETE FROM throttle t USING attempts a WHERE t.key = a.failures_key AND a.wait IS NULL AND a.clears
    ), logins AS (
        SELECT logins_key AS key, count(*) AS added, min(max_logins) AS max_events, CAST(NULL AS float) AS block_s,
            false AS backoff
        FROM attempts WHERE logins_key IS NOT NULL AND wait IS NULL GROUP BY logins_key
    ), counted AS (
        {count_events("logins")}
    )"""
SUCCESS_COLUMNS = {
    "account_key": "bytea",
    "logins_key": "bytea",
    "address_key": "bytea",
    "site_key": "bytea",
    "clears": "bool",
    "max_logins": "int",
}
_SUCCEEDED = BatchStatement(
    f"WITH valid_items AS (SELECT * FROM {{items}}) {COUNT_SUCCESSES} SELECT n, wait FROM attempts",
    columns=SUCCESS_COLUMNS,
)


class LoginCounter(NamedTuple):
    key: bytes
    max_events: int
    has_backoff: bool


class LoginCounterStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._admit = Batch(database, _ADMIT)
        self._succeeded = Batch(database, _SUCCEEDED)

    async def admit(self, **values: Any) -> Row:
        """Returns the user of the account, or another one, and ``wait``: for how long a counter is blocked."""
        row = await self._admit(**values)
        assert row is not None
        return row

    async def charge(self, counters: list[LoginCounter]) -> float | None:
        """Counts an attempt. Returns None, or the seconds for which a counter is blocked: then nothing is counted."""
        wait: float | None = await self._database.value(_CHARGE, **_columns(counters))
        return wait

    async def refund(self, counters: list[LoginCounter]) -> None:
        """Takes back the charge of a correct attempt, and clears the counter of the account."""
        await self._database.value(_REFUND, **_columns(counters))

    async def count_success(self, **values: Any) -> float | None:
        """Counts a correct attempt, with the values of SUCCESS_COLUMNS. Returns for how long a counter is blocked."""
        row = await self._succeeded(**values)
        assert row is not None
        wait: float | None = row["wait"]
        return wait


def _columns(counters: list[LoginCounter]) -> dict[str, list[Any]]:
    keys, limits, backoffs = map(list, zip(*counters, strict=True))
    return {"keys": keys, "limits": limits, "backoffs": backoffs}
