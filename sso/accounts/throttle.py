"""Failed attempts slow an account and an address down. The counts are in the database, the same for every way in.

An attempt is charged before it is judged and refunded if it was good, so that attempts at the same instant cannot
pass together under a limit that lets through one of them.
"""

from ipaddress import ip_network

from sso.accounts.errors import TooManyAttempts
from sso.core.ids import digest
from sso.core.net import Address
from sso.db.bridge import Database
from sso.db.statement import Statement

FREE_FAILURES = 5  # per account, before each further one must wait
LONGEST_WAIT_S = 60
FORGET_S = 900

# A row that is blocked is not charged again, and neither is the other one of the same attempt.
_CHARGE = Statement(
    """
    WITH item AS (
        SELECT * FROM unnest(CAST(:keys AS bytea[]), CAST(:limits AS int[])) AS item (key, most)
    ), blocked AS (
        SELECT extract(epoch FROM max(blocked_until) - now()) AS wait FROM (
            SELECT blocked_until FROM throttle WHERE key = ANY (CAST(:keys AS bytea[])) FOR UPDATE
        ) seen WHERE blocked_until > now()
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
        )
    )
    SELECT wait FROM blocked
    """
)
_REFUND = Statement(
    """UPDATE throttle SET failures = greatest(failures - 1, 0), blocked_until = '-infinity'
    WHERE key = ANY (CAST(:keys AS bytea[]))"""
)
_CLEAR = Statement(
    """WITH gone AS (DELETE FROM throttle WHERE key = :account)
    UPDATE throttle SET failures = greatest(failures - 1, 0), blocked_until = '-infinity' WHERE key = :address"""
)


class Throttle:
    def __init__(self, database: Database, per_address: int) -> None:
        self._database = database
        self._per_address = per_address

    async def charge(self, account: str, address: Address) -> None:
        """Count an attempt; TooManyAttempts if the account or the address must wait."""
        keys = [_account(account)]
        limits = [0]  # none of its own: the account's slow-down
        if self._per_address:
            keys.append(_address(address))
            limits.append(self._per_address)
        wait = await self._database.value(
            _CHARGE, keys=keys, limits=limits, free=FREE_FAILURES, longest=float(LONGEST_WAIT_S), forget=float(FORGET_S)
        )
        if wait is not None:
            raise TooManyAttempts(max(1, int(wait) + 1))

    async def refund(self, account: str, address: Address) -> None:
        """The attempt was no failure, but no sign-in either."""
        await self._database.value(_REFUND, keys=[_account(account), _address(address)])

    async def clear(self, account: str, address: Address) -> None:
        """Somebody signed in: the account starts afresh, the address gets back what it was charged."""
        await self._database.value(_CLEAR, account=_account(account), address=_address(address))


def _account(login_key: str) -> bytes:
    return digest(f"account:{login_key}")


def _address(address: Address) -> bytes:
    # Whoever has one IPv6 address commonly has the 2^64 of its network.
    whole = ip_network((address, 64), strict=False) if address.version == 6 else address
    return digest(f"address:{whole}")
