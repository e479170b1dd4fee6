"""Session tokens: ``token`` and ``stoken`` of the authentication data, accepted in place of login and password.

Each belongs to a sign-in (``sign_ins``). A credential that derives from a token keeps the token's restrictions: kind
and end of a short or bound one, addresses, applications, authentication time and how the user authenticated.
"""

from dataclasses import dataclass, replace

from sso.accounts.errors import InvalidCredentials
from sso.accounts.issue_guard import guarded_by_user
from sso.accounts.model import LoginOptions, SignedIn, User
from sso.accounts.session_token_statements import FAMILY_TOKENS, ISSUE, LOOK_UP, USER_TOKENS
from sso.accounts.user_jwt import GAME_AUTH, InheritedLimits
from sso.core.errors import ApiError
from sso.core.ids import digest, record_id, secret_token
from sso.core.net import Address, intersection, parse_address, parse_network
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement

__all__ = ["FAMILY_TOKENS", "USER_TOKENS", "IssuedSessionTokens", "OtherApplication", "SessionTokens", "TokenSource"]

BOUND_S = 300


class OtherApplication(ApiError):
    """A session token is used for an application that it was not issued for."""

    status = 403
    code = "access_denied"
    message = "token: belongs to another application"


@dataclass(frozen=True)
class TokenSource:
    """A session token that a user signed in with."""

    signed_in: SignedIn
    kind: str
    life: int  # seconds until it expires
    sign_in_id: str
    auth_time: int  # Unix seconds of the original sign-in
    longest: int  # seconds until the absolute lifetime of the sign-in ends
    ips: tuple[str, ...] | None  # networks that derived JWTs work from; None means everywhere
    app_id: int
    gapp_id: int
    token_digest: bytes

    def narrow(self, options: LoginOptions) -> LoginOptions:
        """The options of a login with this token: for its applications, or some of them."""
        own = {self.app_id, self.gapp_id} - {0}
        if not own:
            return options
        if not options.application_ids:
            return replace(options, app_id=self.app_id, gapp_id=self.gapp_id)
        if not own.issuperset(options.application_ids):
            raise OtherApplication
        return options

    def addresses(self, requested: tuple[str, ...]) -> tuple[str, ...] | None:
        """The networks that both the token and the request allow; None means everywhere."""
        if self.ips is None or not requested:
            return self.ips if self.ips is not None else requested or None
        both = intersection(map(parse_network, requested), map(parse_network, self.ips))
        return tuple(str(network) for network in both)


@dataclass(frozen=True)
class IssuedSessionTokens:
    token: str
    stoken: str
    token_exp: int
    moment: int  # of the database, in Unix seconds, at which the user was valid
    sign_in_id: str
    inherited: InheritedLimits  # the limits of a user JWT that is issued with these tokens


class SessionTokens:
    def __init__(self, database: Database, long_s: int, short_s: int, max_s: int) -> None:
        self._long_s = long_s
        self._short_s = short_s
        self._max_s = max_s  # from the original sign-in
        self._look_up = Batch(database, Statement(LOOK_UP))
        self._issue = guarded_by_user(database, *ISSUE)

    async def sign_in(self, token: str, address: Address) -> TokenSource:
        row = await self._look_up(digest(token), float(self._max_s))
        if row is None or (row["kind"] == "bound" and parse_address(row["address"]) != address):
            raise InvalidCredentials
        ips = tuple(row["ips"]) if row["ips"] is not None else None
        if row["kind"] == "bound":
            own = (f"{address}/{address.max_prefixlen}",)
            ips = (
                own if ips is None else tuple(map(str, intersection(map(parse_network, own), map(parse_network, ips))))
            )
        return TokenSource(
            signed_in=SignedIn(User.from_row(row), GAME_AUTH if row["auth"] == GAME_AUTH else "token"),
            kind=row["kind"],
            life=row["life"],
            sign_in_id=row["sign_in"],
            auth_time=row["auth_time"],
            longest=row["longest"],
            ips=ips,
            app_id=row["app_id"],
            gapp_id=row["gapp_id"],
            token_digest=digest(token),
        )

    async def issue(
        self, user: User, auth: str, options: LoginOptions, source: TokenSource | None = None
    ) -> IssuedSessionTokens:
        """A long and a short token; with ``short_token``, only one, bound to the client's address.

        Without a ``source`` this is a new sign-in; with one, the tokens belong to its sign-in and keep its limits.
        InvalidCredentials if the user, or the sign-in, has ended meanwhile.
        """
        kind, life = self._kind_and_life(options, source)
        token, stoken = secret_token(), "" if kind == "bound" else secret_token()
        sign_in_id = source.sign_in_id if source else record_id()
        ips = source.addresses(options.fixed_ips) if source else options.fixed_ips or None
        row = await self._issue(
            user.user_id,
            user.valid_from,
            digest(token),
            kind,
            str(options.address),
            float(life),
            digest(stoken) if stoken else None,
            float(min(life, self._short_s)),
            sign_in_id,
            source.token_digest if source else None,
            auth,
            options.app_id,
            options.gapp_id,
            ",".join(ips) if ips is not None else None,
            float(self._max_s),
        )
        if row is None:
            raise InvalidCredentials
        moment: int = row["moment"]
        inherited = InheritedLimits(auth_time=moment, sign_in_id=sign_in_id)
        if source:
            inherited = InheritedLimits(source.auth_time, moment + source.life, source.ips, sign_in_id=sign_in_id)
        return IssuedSessionTokens(token, stoken, life, moment, sign_in_id, inherited)

    def _kind_and_life(self, options: LoginOptions, source: TokenSource | None) -> tuple[str, int]:
        kind, life = "long", self._long_s
        if options.short_token or (source and source.kind == "bound"):
            kind, life = "bound", BOUND_S
        elif source and source.kind == "short":
            kind, life = "short", self._short_s
        if source and source.kind != "long":
            life = min(life, source.life)
        return kind, min(life, source.longest if source else self._max_s)
