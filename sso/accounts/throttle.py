"""Failed attempts slow an account and an address down. The counts are in the database, the same for every way in.

An attempt counts when it has failed, and how it ended is told only if nothing was blocked at that moment. So of a
hundred guesses at the same instant no more are answered than the limits let through, and a hundred right ones do not
stand in each other's way.
"""

from dataclasses import dataclass
from typing import Any

import trio

from sso.accounts.errors import TooManyAttempts
from sso.accounts.model import User
from sso.core.ids import digest
from sso.core.net import SITE_FACTOR, Address, client_networks
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement

FREE_FAILURES = 5  # per account, before each further one must wait
LONGEST_WAIT_S = 60
FORGET_S = 900

# A key is NULL where its limit is off.
_ADMIT = Statement(
    """SELECT item.n, u.*, (
        SELECT extract(epoch FROM max(blocked_until) - now()) FROM throttle
        WHERE key IN (item.account_key, item.logins_key, item.address_key, item.site_key) AND blocked_until > now()
    ) AS wait
    FROM unnest(CAST(:accounts AS text[]), CAST(:account_keys AS bytea[]), CAST(:logins_keys AS bytea[]),
            CAST(:address_keys AS bytea[]), CAST(:site_keys AS bytea[]))
        WITH ORDINALITY AS item (account, account_key, logins_key, address_key, site_key, n)
    LEFT JOIN users u ON u.login_key = item.account"""
)
# Rows are locked in the order of their keys, so that nobody waits in a circle.
_SEEN = "SELECT key, blocked_until FROM throttle WHERE key = ANY ({keys}) ORDER BY key FOR UPDATE"
# A row that is blocked is not charged again, and neither is the other one of the same attempt. Who was the first at
# a key together with others finds out by what was not charged.
_FAILED = Statement(
    f"""
    WITH item AS (
        SELECT * FROM unnest(CAST(:keys AS bytea[]), CAST(:limits AS int[])) AS item (key, most)
    ), blocked AS (
        SELECT extract(epoch FROM max(blocked_until) - now()) AS wait
        FROM ({_SEEN.format(keys="CAST(:keys AS bytea[])")}) seen WHERE blocked_until > now()
    ), charged AS (
        INSERT INTO throttle AS t (key, failures, since, blocked_until, expires)
        SELECT key, 1, now(), CASE WHEN most = 1 THEN now() + interval '60 s' ELSE '-infinity' END,
               now() + make_interval(secs => :forget)
        FROM item WHERE (SELECT wait FROM blocked) IS NULL ORDER BY key
        ON CONFLICT (key) DO UPDATE SET (failures, since, blocked_until, expires) = (
            SELECT n, s,
                CASE WHEN most = 0 AND n >= :free
                         THEN now() + make_interval(secs => least(:longest, 2.0 ^ least(n - :free, 30)))
                     WHEN most > 0 AND n >= most THEN s + interval '60 s'
                     ELSE '-infinity' END,
                now() + make_interval(secs => :forget)
            FROM (
                SELECT most, CASE WHEN fresh THEN 1 ELSE t.failures + 1 END AS n,
                       CASE WHEN fresh THEN now() ELSE t.since END AS s
                FROM (SELECT most, t.expires < now() OR (most > 0 AND t.since < now() - interval '60 s') AS fresh
                      FROM item WHERE item.key = t.key) x
            ) y
        ) WHERE t.blocked_until <= now()
        RETURNING key
    )
    SELECT CASE WHEN wait IS NOT NULL THEN wait
                WHEN (SELECT count(*) FROM charged) < (SELECT count(*) FROM item) THEN 0 END
    FROM blocked
    """  # noqa: S608 - the parts are ours
)
# The rows were charged before the guess was judged; it was right, and nothing was lost.
_REFUND = Statement(
    f"""WITH item AS (
        SELECT * FROM unnest(CAST(:keys AS bytea[]), CAST(:limits AS int[])) AS item (key, most)
    ), seen AS (
        {_SEEN.format(keys="CAST(:keys AS bytea[])")}
    ), gone AS (
        DELETE FROM throttle WHERE key = ANY (ARRAY(SELECT key FROM seen JOIN item USING (key) WHERE most = 0))
    )
    UPDATE throttle t SET failures = greatest(failures - 1, 0), blocked_until = CASE
        WHEN failures <= most THEN '-infinity' ELSE blocked_until END
    FROM item WHERE item.most > 0 AND t.key = item.key
        AND t.key = ANY (ARRAY(SELECT key FROM seen))"""  # noqa: S608
)
_EVERY_KEY = "CAST(:account_keys AS bytea[]) || CAST(:address_keys AS bytea[]) || CAST(:site_keys AS bytea[])"
# A right password. It counts as a login of the account, and clears the failures if nothing else is owed.
_SUCCEEDED = Statement(
    f"""WITH item AS (
        SELECT * FROM unnest(CAST(:account_keys AS bytea[]), CAST(:logins_keys AS bytea[]),
                CAST(:address_keys AS bytea[]), CAST(:site_keys AS bytea[]),
                CAST(:clears AS bool[]), CAST(:limits AS int[]))
            WITH ORDINALITY AS item (account_key, logins_key, address_key, site_key, clears, most, n)
    ), seen AS (
        {_SEEN.format(keys=_EVERY_KEY)}
    ), told AS (
        SELECT item.*, account.key AS failures_key,
            greatest(account.blocked_until, address.blocked_until, site.blocked_until) AS until
        FROM item LEFT JOIN seen account ON account.key = account_key
        LEFT JOIN seen address ON address.key = address_key LEFT JOIN seen site ON site.key = site_key
    ), gone AS (
        DELETE FROM throttle t USING told WHERE t.key = told.failures_key AND told.until <= now() AND told.clears
    ), counted AS (
        INSERT INTO throttle AS t (key, failures, since, blocked_until, expires)
        SELECT logins_key, count(*), now(),
            CASE WHEN count(*) >= min(most) THEN now() + interval '60 s' ELSE '-infinity' END, now() + interval '60 s'
        FROM told WHERE logins_key IS NOT NULL AND (until > now()) IS NOT TRUE GROUP BY logins_key ORDER BY logins_key
        ON CONFLICT (key) DO UPDATE SET (failures, since, blocked_until, expires) = (
            SELECT total, start, CASE WHEN total >= (SELECT min(most) FROM item) THEN start + interval '60 s'
                ELSE '-infinity' END, start + interval '60 s'
            FROM (
                SELECT CASE WHEN fresh THEN 0 ELSE t.failures END + excluded.failures AS total,
                    CASE WHEN fresh THEN now() ELSE t.since END AS start
                FROM (SELECT t.since < now() - interval '60 s' AS fresh) x
            ) y
        )
    )
    SELECT n, CASE WHEN until > now() THEN extract(epoch FROM until - now()) END AS wait FROM told"""  # noqa: S608
)


@dataclass(frozen=True)
class Attempt:
    """Somebody tries to sign in to an account. Failures of a known device count apart from those of all others."""

    account: str  # the login key
    address: Address
    device: str = ""  # names a device that has signed in to this account before

    @property
    def counter(self) -> str:
        return f"device:{self.account}:{self.device}" if self.device else f"account:{self.account}"

    @property
    def logins_counter(self) -> str:
        """Known devices have one of their own: a password without its second factor must not use up the owner's."""
        return f"known logins:{self.account}" if self.device else f"logins:{self.account}"


class Throttle:
    def __init__(self, database: Database, per_address: int, logins_per_account: int) -> None:
        self._database = database
        self._per_address = per_address
        self._logins_per_account = logins_per_account
        self._admit = Batch(database, _ADMIT)
        self._succeeded = Batch(database, _SUCCEEDED)

    async def admit(self, attempt: Attempt) -> User | None:
        """Returns the user of the account, if there is one. Raises TooManyAttempts if a counter is blocked."""
        logins_key = digest(attempt.logins_counter) if self._logins_per_account else None
        row = await self._admit(attempt.account, digest(attempt.counter), logins_key, *self._networks(attempt))
        assert row is not None
        _refuse(row["wait"])
        return None if row["user_id"] is None else User.from_row(row)

    async def failed(self, attempt: Attempt) -> None:
        """Counts a failure. Raises TooManyAttempts if a counter was blocked: then the outcome must not be disclosed."""
        with trio.CancelScope(shield=True):  # it counts although the client has gone; the database has a deadline
            wait = await self._database.value(
                _FAILED,
                **self._counters(attempt),
                free=FREE_FAILURES,
                longest=float(LONGEST_WAIT_S),
                forget=float(FORGET_S),
            )
        _refuse(wait)

    async def charge(self, attempt: Attempt) -> None:
        """Counts a guess before it is judged. Raises TooManyAttempts if it must not be judged at all."""
        await self.failed(attempt)

    async def refund(self, attempt: Attempt) -> None:
        """A charged guess was right: the account starts afresh, and the networks have their guess back."""
        await self._database.value(_REFUND, **self._counters(attempt))

    async def succeeded(self, attempt: Attempt, *, clears: bool = True) -> None:
        """Counts a right password. With ``clears``, failures of the account are forgotten.

        Raises TooManyAttempts if a counter is blocked: then it was a guess too many, and no success.
        """
        limit = self._logins_per_account
        logins_key = digest(attempt.logins_counter) if limit else None
        row = await self._succeeded(digest(attempt.counter), logins_key, *self._networks(attempt), clears, limit)
        assert row is not None
        _refuse(row["wait"])

    def _networks(self, attempt: Attempt) -> tuple[bytes | None, bytes | None]:
        """Returns the keys of the address (an IPv6 address by its /64) and of the /48 of an IPv6 address."""
        if not self._per_address:
            return None, None
        network, site = client_networks(attempt.address)
        return digest(f"address:{network}"), digest(f"address:{site}") if site else None

    def _counters(self, attempt: Attempt) -> dict[str, list[Any]]:
        """Returns the keys that a failure counts for, and the limit of each; 0: an account, which is slowed down."""
        limits = {digest(attempt.counter): 0}
        for key, limit in zip(self._networks(attempt), (1, SITE_FACTOR), strict=True):
            if key is not None:
                limits[key] = limit * self._per_address
        return {"keys": list(limits), "limits": list(limits.values())}


def _refuse(wait: float | None) -> None:
    if wait is not None:
        raise TooManyAttempts(max(1, int(wait) + 1))
