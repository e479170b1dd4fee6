"""Session tokens: ``token`` and ``stoken`` of the authentication data, accepted in place of login and password.

What was obtained with a short or bound token is never worth more than it: same kind, same end.
"""

from dataclasses import dataclass

from sso.accounts.errors import InvalidCredentials
from sso.accounts.model import SignedIn, User
from sso.accounts.users import NOW, STILL_VALID
from sso.core.ids import digest, secret_token
from sso.core.net import Address, parse_address
from sso.db.batch import Batch
from sso.db.bridge import Database
from sso.db.statement import Statement

BOUND_S = 300

_ISSUE = Statement(
    f"""WITH {STILL_VALID}
    INSERT INTO session_tokens (digest, user_id, kind, address, expires)
    SELECT digest, user_id, kind, address, now() + make_interval(secs => life)
    FROM unnest(CAST(:digests AS bytea[]), CAST(:kinds AS text[]), CAST(:addresses AS text[]), CAST(:lives AS float[]))
        AS item (digest, kind, address, life), still_valid RETURNING {NOW}"""  # noqa: S608 - the parts are ours
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
        self._database = database
        self._long_s = long_s
        self._short_s = short_s
        self._look_up = Batch(database, _LOOK_UP)

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
        rows = [(token, kind, str(address) if kind == "bound" else None, float(life))]
        if stoken:
            rows.append((stoken, "short", None, float(min(life, self._short_s))))
        moment = await self._database.value(
            _ISSUE,
            user_id=user.user_id,
            valid_from=user.valid_from,
            digests=[digest(secret) for secret, *_ in rows],
            kinds=[kind for _, kind, *_ in rows],
            addresses=[bound_to for *_, bound_to, _ in rows],
            lives=[seconds for *_, seconds in rows],
        )
        if moment is None:
            raise InvalidCredentials
        return Issued(token, stoken, life, moment)
