"""Session tokens: ``token`` and ``stoken`` of the authentication data, accepted in place of login and password.

What was obtained with a short or bound token is never worth more than it: same kind, same end.
"""

from dataclasses import dataclass

from sso.accounts.errors import InvalidCredentials
from sso.accounts.model import SignedIn, User
from sso.accounts.still_valid import NOW, still_valid
from sso.core.ids import digest, secret_token
from sso.core.net import Address, parse_address
from sso.db.batch import Batch
from sso.db.bridge import Database
from sso.db.statement import Statement

BOUND_S = 300

_ISSUE = (
    """SELECT * FROM unnest(
            CAST(:user_ids AS text[]), CAST(:valid_from AS bigint[]), CAST(:tokens AS bytea[]), CAST(:kinds AS text[]),
            CAST(:addresses AS text[]), CAST(:lives AS float[]),
            CAST(:stokens AS bytea[]), CAST(:short_lives AS float[])
        ) WITH ORDINALITY AS item (user_id, valid_from, token, kind, address, life, stoken, short_life, n)""",
    f""", issued AS (
        INSERT INTO session_tokens (digest, user_id, kind, address, expires)
        SELECT token, user_id, kind, address, now() + make_interval(secs => life) FROM still_valid
        UNION ALL
        SELECT stoken, user_id, 'short', NULL, now() + make_interval(secs => short_life) FROM still_valid
        WHERE stoken IS NOT NULL
    )
    SELECT n, {NOW} AS moment FROM still_valid""",  # noqa: S608 - the part is ours
)
_LOOK_UP = Statement(
    """SELECT item.n, u.*, t.kind, t.address, CAST(extract(epoch FROM t.expires - now()) AS int) AS life
    FROM unnest(CAST(:digests AS bytea[])) WITH ORDINALITY AS item (digest, n)
    JOIN session_tokens t ON t.digest = item.digest JOIN users u ON u.user_id = t.user_id
    WHERE t.expires > now() AND NOT u.disabled"""
)


@dataclass(frozen=True)
class Issued:
    token: str
    stoken: str
    token_exp: int
    moment: int  # of the database, in Unix seconds: then the user was who they are


@dataclass(frozen=True)
class Source:
    """The token that somebody signed in with: what follows from it is bounded by it."""

    signed_in: SignedIn
    kind: str
    life: int


class SessionTokens:
    def __init__(self, database: Database, long_s: int, short_s: int) -> None:
        self._long_s = long_s
        self._short_s = short_s
        self._look_up = Batch(database, _LOOK_UP)
        self._issue = still_valid(database, *_ISSUE)

    async def sign_in(self, token: str, address: Address) -> Source:
        row = await self._look_up(digest(token))
        if row is None or (row["kind"] == "bound" and parse_address(row["address"]) != address):
            raise InvalidCredentials
        return Source(SignedIn(User.from_row(row), "token"), row["kind"], max(1, row["life"]))

    async def issue(self, user: User, address: Address, *, bound: bool, source: Source | None = None) -> Issued:
        """A long and a short token; with ``bound`` (short_token), only one, for this address."""
        life = self._long_s
        kind = "long"
        if bound or (source and source.kind == "bound"):
            kind, life = "bound", BOUND_S
        elif source and source.kind == "short":
            kind, life = "short", self._short_s
        if source and source.kind != "long":
            life = min(life, source.life)
        token, stoken = secret_token(), "" if kind == "bound" else secret_token()
        row = await self._issue(
            user.user_id,
            user.valid_from,
            digest(token),
            kind,
            str(address) if kind == "bound" else None,
            float(life),
            digest(stoken) if stoken else None,
            float(min(life, self._short_s)),
        )
        if row is None:
            raise InvalidCredentials
        return Issued(token, stoken, life, row["moment"])
