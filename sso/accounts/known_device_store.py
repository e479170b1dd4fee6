"""The factors and places of known devices in the database, as digests."""

from collections.abc import Sequence

from sso.accounts.model import User
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row

FACTOR_S = 180 * 86400
MAX_FACTORS = 50  # for one user

# All digests of a device are one text, separated by spaces: an item has one value for each column. The digest that was
# used last decides.
_DIGESTS = "CAST(string_to_array(item.digests, ' ') AS bytea[])"
_RECOGNIZE = BatchStatement(
    f"""SELECT item.n, max(k.expires) < now() + make_interval(secs => life - 86400)
            OR NOT bool_or(k.digest = ({_DIGESTS})[1]) AS is_stale,
        extract(epoch FROM max(k.expires)) - life < max(u.valid_from) AS is_earlier
    FROM {{items}} JOIN known_factors k ON k.digest = ANY ({_DIGESTS}) JOIN users u ON u.user_id = k.user_id
    WHERE k.expires > now() GROUP BY item.n, digests, life""",
    columns={"digests": "text", "life": "float"},
)
_REMEMBER = Statement(
    """WITH remembered AS (
        -- Not if the user was revoked since it was read.
        INSERT INTO known_factors (digest, user_id, expires)
        SELECT :digest, user_id, now() + make_interval(secs => :life) FROM users
        WHERE user_id = :user_id AND valid_from = :valid_from FOR SHARE
        ON CONFLICT (digest) DO UPDATE SET expires = excluded.expires
    )
    DELETE FROM known_factors WHERE digest = ANY (ARRAY(
        SELECT digest FROM known_factors WHERE user_id = :user_id AND digest <> :digest
        ORDER BY expires DESC OFFSET :others FOR UPDATE SKIP LOCKED
    ))"""
)


class KnownFactorStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._find = Batch(database, _RECOGNIZE)

    async def find(self, digests: Sequence[bytes]) -> Row | None:
        """Returns what is known of a device by any of its digests, None if it is not known.

        ``is_stale``: the first digest is to be stored again; ``is_earlier`` than the user's last revocation.
        """
        texts = " ".join(rf"\x{digest.hex()}" for digest in digests)
        return await self._find(digests=texts, life=float(FACTOR_S))

    async def remember(self, user: User, digest: bytes) -> None:
        """Stores the digest, unless the user was revoked since it was read. The oldest beyond the limit are removed."""
        await self._database.value(
            _REMEMBER,
            digest=digest,
            user_id=user.user_id,
            valid_from=user.valid_from,
            life=float(FACTOR_S),
            others=MAX_FACTORS - 1,
        )
