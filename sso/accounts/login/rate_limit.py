"""Limits login attempts per account and per client network. The counters are in the database, shared by all workers.

A failed attempt is counted after the password was checked, and its result is disclosed only if no counter was blocked
at that moment. So a hundred concurrent guesses learn no more results than the limits allow, and a hundred concurrent
correct logins do not hinder each other.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import trio

from sso.accounts.errors import TooManyAttempts
from sso.accounts.history.events import FAILED_ATTEMPT, EventKind, record_failure
from sso.accounts.model import User
from sso.core.ids import digest
from sso.core.net import SITE_FACTOR, Address, client_networks
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.rate_limit import count_events
from sso.db.statement import Statement
from sso.telemetry.counters import THROTTLED_REQUESTS

FREE_FAILURES = 5  # for an account; the fifth and each further one blocks it, for a second at first

# A key is NULL if its limit is off.
_ADMIT = BatchStatement(
    """SELECT item.n, u.*, (
        SELECT extract(epoch FROM max(blocked_until) - now()) FROM throttle
        WHERE key IN (item.account_key, item.logins_key, item.address_key, item.site_key) AND blocked_until > now()
    ) AS wait
    FROM {items} LEFT JOIN users u ON u.login_key = item.account""",
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
_ALL_CHARGED = "(SELECT count(*) FROM charged) = (SELECT count(*) FROM counters)"
# If one counter of the attempt is blocked, none is charged. A counter that has no row yet cannot be locked: if a
# concurrent attempt creates and blocks it first, the WHERE clause leaves it alone, and this attempt counts as blocked.
# The failure is added to the history of the user, if there is one, in the same statement: the time of another commit
# would tell whether the user exists.
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
    ), {FAILED_ATTEMPT.format(condition=_ALL_CHARGED)}
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


@dataclass(frozen=True)
class LoginAttempt:
    """An attempt to log in to an account. Failures of a known device have a counter of their own."""

    account: str  # the login key
    address: Address
    device: str = ""  # the name of a device that has logged in to this account before

    @property
    def counter(self) -> str:
        """The counter of failures."""
        return f"device:{self.account}:{self.device}" if self.device else f"account:{self.account}"

    @property
    def logins_counter(self) -> str:
        """The counter of logins. Known devices have another one, so that an attacker with a stolen password but without
        the second factor does not use up the owner's logins."""
        return f"known logins:{self.account}" if self.device else f"logins:{self.account}"


class _Counter(NamedTuple):
    key: bytes
    max_events: int
    has_backoff: bool


class LoginRateLimiter:
    def __init__(self, database: Database, per_address: int, logins_per_account: int) -> None:
        self._database = database
        self._per_address = per_address
        self._logins_per_account = logins_per_account
        self._admit = Batch(database, _ADMIT)
        self._succeeded = Batch(database, _SUCCEEDED)

    async def admit(self, attempt: LoginAttempt) -> User | None:
        """Returns the user of the account, if there is one. Raises TooManyAttempts if a counter is blocked."""
        address_key, site_key = self._network_keys(attempt.address)
        row = await self._admit(
            account=attempt.account,
            account_key=digest(attempt.counter),
            logins_key=self._logins_key(attempt),
            address_key=address_key,
            site_key=site_key,
        )
        assert row is not None
        raise_if_blocked(row["wait"])
        return None if row["user_id"] is None else User.from_row(row)

    async def record_failure(self, attempt: LoginAttempt, user: User | None = None) -> None:
        """Counts a failure, and adds it to the history of the user.

        Raises TooManyAttempts if a counter was blocked: then the result must not be disclosed.
        """
        await self._charge(attempt, user.user_id if user else None)

    async def charge(self, attempt: LoginAttempt) -> None:
        """Counts an attempt before it is checked. Raises TooManyAttempts if it must not be checked at all."""
        await self._charge(attempt, None)

    async def charge_address(self, address: Address) -> None:
        """Like `charge`, for an attempt that does not name its account, such as the answer of a passkey."""
        if self._per_address:
            await self._charge_counters(self._network_counters(address), None, address)

    async def refund_address(self, address: Address) -> None:
        """Takes back `charge_address` after a correct attempt."""
        if self._per_address:
            await self._database.value(_REFUND, **_columns(self._network_counters(address)))

    async def record_wrong_code(self, attempt: LoginAttempt, user: User) -> None:
        """Adds a wrong code, which was charged before, to the history of the user."""
        await record_failure(self._database, user.user_id, EventKind.CODE_FAILED, str(attempt.address))

    async def _charge(self, attempt: LoginAttempt, failed_user_id: str | None) -> None:
        await self._charge_counters(self._counters(attempt), failed_user_id, attempt.address)

    async def _charge_counters(self, counters: list[_Counter], failed_user_id: str | None, address: Address) -> None:
        failure = {
            "failed_user_id": failed_user_id,
            "failed_kind": EventKind.SIGN_IN_FAILED,
            "failed_address": str(address),
        }
        with trio.CancelScope(shield=True):  # count it even if the client has disconnected; the database has a deadline
            wait = await self._database.value(_CHARGE, **_columns(counters), **failure)
        raise_if_blocked(wait)

    async def refund(self, attempt: LoginAttempt) -> None:
        """Takes back the charge of an attempt that was correct, and clears the failures of its account."""
        await self._database.value(_REFUND, **_columns(self._counters(attempt)))

    async def record_success(self, attempt: LoginAttempt, *, clears: bool = True) -> None:
        """Counts a correct password. With ``clears``, deletes the failures of the account.

        Raises TooManyAttempts if a counter is blocked: then the result must not be disclosed.
        """
        row = await self._succeeded(**self.success_columns(attempt, clears=clears))
        assert row is not None
        raise_if_blocked(row["wait"])

    def success_columns(self, attempt: LoginAttempt, *, clears: bool = True) -> dict[str, Any]:
        """Returns the values of SUCCESS_COLUMNS, for a statement that counts the success as a part of it.

        Such a statement has no other effect on an attempt with ``wait``, and its caller calls `raise_if_blocked`.
        """
        address_key, site_key = self._network_keys(attempt.address)
        return {
            "account_key": digest(attempt.counter),
            "logins_key": self._logins_key(attempt),
            "address_key": address_key,
            "site_key": site_key,
            "clears": clears,
            "max_logins": self._logins_per_account,
        }

    def _logins_key(self, attempt: LoginAttempt) -> bytes | None:
        return digest(attempt.logins_counter) if self._logins_per_account else None

    def _network_keys(self, address: Address) -> tuple[bytes | None, bytes | None]:
        """Returns the keys of the client's network and of its IPv6 site."""
        if not self._per_address:
            return None, None
        network, site = client_networks(address)
        return digest(f"address:{network}"), digest(f"address:{site}") if site else None

    def _counters(self, attempt: LoginAttempt) -> list[_Counter]:
        """Returns the counters that a failure is charged to: the account's, with backoff, and the networks'."""
        return [_Counter(digest(attempt.counter), FREE_FAILURES, True), *self._network_counters(attempt.address)]

    def _network_counters(self, address: Address) -> list[_Counter]:
        keys = zip(self._network_keys(address), (1, SITE_FACTOR), strict=True)
        return [_Counter(key, factor * self._per_address, False) for key, factor in keys if key is not None]


def _columns(counters: list[_Counter]) -> dict[str, list[Any]]:
    keys, limits, backoffs = map(list, zip(*counters, strict=True))
    return {"keys": keys, "limits": limits, "backoffs": backoffs}


def raise_if_blocked(wait: float | None) -> None:
    """Raises TooManyAttempts if there is a time to wait. Then the result of the attempt must not be disclosed."""
    if wait is not None:
        THROTTLED_REQUESTS.add("login")
        raise TooManyAttempts(max(1, int(wait) + 1))
