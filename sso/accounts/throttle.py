"""Failed attempts slow an account and an address down. The counts are in the database, the same for every way in.

An attempt counts when it has failed, and how it ended is told only if nothing was blocked at that moment. So of a
hundred guesses at the same instant no more are answered than the limits let through, and a hundred right ones do not
stand in each other's way.
"""

from ipaddress import ip_network

import trio

from sso.accounts.errors import TooManyAttempts
from sso.accounts.model import User
from sso.core.ids import digest
from sso.core.net import Address
from sso.db.batch import Batch
from sso.db.bridge import Database
from sso.db.statement import Statement

FREE_FAILURES = 5  # per account, before each further one must wait
LONGEST_WAIT_S = 60
FORGET_S = 900

# Without a limit for addresses the second key is NULL, here and below.
_ADMIT = Statement(
    """SELECT item.n, u.*, (
        SELECT extract(epoch FROM max(blocked_until) - now()) FROM throttle
        WHERE key IN (item.account_key, item.address_key) AND blocked_until > now()
    ) AS wait
    FROM unnest(CAST(:accounts AS text[]), CAST(:account_keys AS bytea[]), CAST(:address_keys AS bytea[]))
        WITH ORDINALITY AS item (account, account_key, address_key, n)
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
    f"""WITH seen AS (
        {_SEEN.format(keys="CAST(:keys AS bytea[])")}
    ), gone AS (
        DELETE FROM throttle WHERE key = ANY (ARRAY(SELECT key FROM seen WHERE key = :account_key))
    )
    UPDATE throttle SET failures = greatest(failures - 1, 0), blocked_until = CASE
        WHEN failures <= :most THEN '-infinity' ELSE blocked_until END
    WHERE key = ANY (ARRAY(SELECT key FROM seen WHERE key <> :account_key))"""  # noqa: S608
)
# Hardly ever is there a row at all; then this has read and no more.
_SUCCEEDED = Statement(
    f"""WITH item AS (
        SELECT * FROM unnest(CAST(:account_keys AS bytea[]), CAST(:address_keys AS bytea[]))
            WITH ORDINALITY AS item (account_key, address_key, n)
    ), seen AS (
        {_SEEN.format(keys="CAST(:account_keys AS bytea[]) || CAST(:address_keys AS bytea[])")}
    ), told AS (
        SELECT n, account.key, greatest(account.blocked_until, address.blocked_until) AS until
        FROM item LEFT JOIN seen account ON account.key = account_key
        LEFT JOIN seen address ON address.key = address_key
    ), gone AS (
        DELETE FROM throttle t USING told WHERE t.key = told.key AND told.until <= now()
    )
    SELECT n, CASE WHEN until > now() THEN extract(epoch FROM until - now()) END AS wait FROM told"""  # noqa: S608
)


class Throttle:
    def __init__(self, database: Database, per_address: int) -> None:
        self._database = database
        self._per_address = per_address
        self._admit = Batch(database, _ADMIT)
        self._succeeded = Batch(database, _SUCCEEDED)

    async def admit(self, account: str, address: Address) -> User | None:
        """Who makes this attempt, if there is such a user. TooManyAttempts if the account or the address must wait."""
        row = await self._admit(account, *self._keys(account, address))
        assert row is not None
        _refuse(row["wait"])
        return None if row["user_id"] is None else User.from_row(row)

    async def failed(self, account: str, address: Address) -> None:
        """Count it. TooManyAttempts if others have used up what was left: the caller is then told no more than that."""
        account_key, address_key = self._keys(account, address)
        keys = [account_key] if address_key is None else [account_key, address_key]
        with trio.CancelScope(shield=True):  # it has failed, also if the client has gone; the database has a deadline
            wait = await self._database.value(
                _FAILED,
                keys=keys,
                limits=[0, self._per_address][: len(keys)],  # an account has a slow-down of its own
                free=FREE_FAILURES,
                longest=float(LONGEST_WAIT_S),
                forget=float(FORGET_S),
            )
        _refuse(wait)

    async def charge(self, account: str, address: Address) -> None:
        """Counts a guess before it is judged. Raises TooManyAttempts if it must not be judged at all."""
        await self.failed(account, address)

    async def refund(self, account: str, address: Address) -> None:
        """A charged guess was right: the account starts afresh, and the address has its guess back."""
        account_key, address_key = self._keys(account, address)
        keys = [key for key in (account_key, address_key) if key is not None]
        await self._database.value(_REFUND, keys=keys, account_key=account_key, most=self._per_address)

    async def succeeded(self, account: str, address: Address) -> None:
        """The account starts afresh. TooManyAttempts as above: then it was a guess too many, and no success."""
        row = await self._succeeded(*self._keys(account, address))
        assert row is not None
        _refuse(row["wait"])

    def _keys(self, account: str, address: Address) -> tuple[bytes, bytes | None]:
        """Of the account and, if addresses have a limit, of the address."""
        account_key = digest(f"account:{account}")
        if not self._per_address:
            return account_key, None
        # Whoever has one IPv6 address commonly has the 2^64 of its network.
        whole = ip_network((address, 64), strict=False) if address.version == 6 else address
        return account_key, digest(f"address:{whole}")


def _refuse(wait: float | None) -> None:
    if wait is not None:
        raise TooManyAttempts(max(1, int(wait) + 1))
