"""Session tokens: ``token`` and ``stoken`` of the authentication data, accepted in place of login and password.

Each belongs to a sign-in (table ``sign_ins``). A credential that derives from a token keeps the token's restrictions:
the kind and end of a short or bound one, its addresses and applications, and time and method of the authentication.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.authentication_context import AuthenticationContext, by_session_token
from sso.accounts.errors import Banned, InvalidCredentials
from sso.accounts.guarded_statements import guarded_by_user
from sso.accounts.model import LoginOptions, SignedIn, User
from sso.accounts.session_token_statements import (
    BAN_OF_TOKEN,
    ISSUE,
    ISSUE_APPLICATIONS,
    ISSUE_COLUMNS,
    LOOK_UP,
)
from sso.accounts.user_jwt import InheritedLimits
from sso.core.ban import Ban
from sso.core.errors import ApiError
from sso.core.ids import digest, record_id, secret_token
from sso.core.net import Address, intersection, parse_address, parse_network
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.telemetry.counters import LOGINS

BOUND_S = 300


class OtherApplication(ApiError):
    """A session token was used for an application that it was not issued for."""

    status = 403
    code = "access_denied"
    message = "token: belongs to another application"


class TokenSource(Struct, frozen=True):
    """A session token that a user has logged in with, and the limits that derived credentials keep."""

    signed_in: SignedIn
    kind: str
    life: int  # seconds until it expires
    sign_in_id: str
    auth_time: int  # Unix seconds of the original sign-in; 0 if no proof is known
    sign_in_life: int  # seconds until the absolute lifetime of the sign-in ends
    ips: tuple[str, ...] | None  # networks that derived JWTs work from; None means everywhere
    app_id: int
    gapp_id: int
    token_digest: bytes

    def narrow(self, options: LoginOptions) -> LoginOptions:
        """Returns the options of a login with this token: for all of its applications, or the requested ones.

        Raises OtherApplication if the token was not issued for a requested application.
        """
        own = {self.app_id, self.gapp_id} - {0}
        if not own:
            return options
        if not options.application_ids:
            return replace(options, app_id=self.app_id, gapp_id=self.gapp_id)
        if not own.issuperset(options.application_ids):
            raise OtherApplication
        return options

    def addresses(self, requested: tuple[str, ...]) -> tuple[str, ...] | None:
        """Returns the networks that both the token and the request allow; None means everywhere."""
        if self.ips is None or not requested:
            return self.ips if self.ips is not None else requested or None
        both = intersection(map(parse_network, requested), map(parse_network, self.ips))
        return tuple(str(network) for network in both)


class PreparedSessionTokens(Struct, frozen=True):
    """Tokens that no statement has issued yet."""

    token: str
    stoken: str
    life: int
    sign_in_id: str
    columns: dict[str, Any]  # those of `ISSUE_COLUMNS`


class IssuedSessionTokens(Struct, frozen=True):
    token: str
    stoken: str
    token_exp: int
    validated_at: int  # database time, in Unix seconds, at which the user was valid
    sign_in_id: str
    inherited: InheritedLimits  # the limits of a user JWT that is issued with these tokens


class SessionTokens:
    def __init__(self, database: Database, long_s: int, short_s: int, max_s: int, appeal_url: str = "") -> None:
        self._database = database
        self._appeal_url = appeal_url
        self._long_s = long_s
        self._short_s = short_s
        self._max_s = max_s  # from the original sign-in
        self._look_up = Batch(database, LOOK_UP)
        self._issue = guarded_by_user(
            database, "accounts.session_token_statements.ISSUE", ISSUE, ISSUE_COLUMNS, ISSUE_APPLICATIONS
        )

    async def sign_in(self, token: str, address: Address) -> TokenSource:
        """Raises InvalidCredentials if the token is unknown, expired, revoked or bound to another address.

        Raises Banned if a ban of its user has ended it.
        """
        token_digest = digest(token)
        row = await self._look_up(digest=token_digest, max_s=float(self._max_s))
        if row is None or (row["kind"] == "bound" and parse_address(row["address"]) != address):
            LOGINS.add("token", "wrong_credentials")
            ban = await self._database.value(BAN_OF_TOKEN, digest=token_digest) if row is None else None
            raise Banned(Ban.from_json(ban), self._appeal_url) if ban else InvalidCredentials
        LOGINS.add("token", "success")
        ips = tuple(row["ips"]) if row["ips"] is not None else None
        if row["kind"] == "bound":
            own = (f"{address}/{address.max_prefixlen}",)
            ips = (
                own if ips is None else tuple(map(str, intersection(map(parse_network, own), map(parse_network, ips))))
            )
        return TokenSource(
            signed_in=SignedIn(User.from_row(row), by_session_token(row["auth"], second_factor=row["second_factor"])),
            kind=row["kind"],
            life=row["life"],
            sign_in_id=row["sign_in"],
            auth_time=row["auth_time"],
            sign_in_life=row["sign_in_life"],
            ips=ips,
            app_id=row["app_id"],
            gapp_id=row["gapp_id"],
            token_digest=token_digest,
        )

    async def issue(
        self,
        user: User,
        authentication: AuthenticationContext,
        options: LoginOptions,
        source: TokenSource | None = None,
        sign_in_id: str = "",
    ) -> IssuedSessionTokens:
        """Issues a long and a short token or, with ``short_token``, one token that is bound to the client's address.

        Without a ``source`` this is a new sign-in; with one, the tokens belong to its sign-in and keep its limits.
        Raises InvalidCredentials if the user was revoked, or the sign-in was ended, since it was read, and if a new
        sign-in with the id ``sign_in_id`` exists already.
        """
        new = self.prepare(authentication, options, source, sign_in_id)
        row = await self._issue(user_id=user.user_id, valid_from=user.valid_from, **new.columns)
        if row is None:
            raise InvalidCredentials
        return self.issued(new, authentication, row["validated_at"], source)

    def prepare(
        self,
        authentication: AuthenticationContext,
        options: LoginOptions,
        source: TokenSource | None = None,
        sign_in_id: str = "",
        device_key: bytes | None = None,
    ) -> PreparedSessionTokens:
        """Returns new tokens, for a statement that issues them."""
        kind, life = self._kind_and_life(options, source)
        token, stoken = secret_token(), "" if kind == "bound" else secret_token()
        sign_in_id = source.sign_in_id if source else sign_in_id or record_id()
        ips = source.addresses(options.fixed_ips) if source else options.fixed_ips or None
        columns = {
            "token": digest(token),
            "kind": kind,
            "address": str(options.address),
            "life": float(life),
            "stoken": digest(stoken) if stoken else None,
            "short_life": float(min(life, self._short_s)),
            "sign_in": sign_in_id,
            "source": source.token_digest if source else None,
            "auth": authentication.auth,
            "auth_time": authentication.auth_time,
            "second_factor": authentication.has_second_factor,
            "app_id": options.app_id,
            "gapp_id": options.gapp_id,
            "ips": ",".join(ips) if ips is not None else None,
            "max_s": float(self._max_s),
            "device_key": device_key,
        }
        return PreparedSessionTokens(token, stoken, life, sign_in_id, columns)

    def issued(
        self,
        new: PreparedSessionTokens,
        authentication: AuthenticationContext,
        validated_at: int,
        source: TokenSource | None = None,
    ) -> IssuedSessionTokens:
        """Returns the tokens that a statement has issued at this time."""
        factor = authentication.has_second_factor
        if source:
            ends = validated_at + min(source.life, source.sign_in_life)
            inherited = InheritedLimits(source.auth_time, ends, source.ips, new.sign_in_id, second_factor=factor)
        elif authentication.auth_time is None:
            inherited = InheritedLimits(auth_time=validated_at, sign_in_id=new.sign_in_id, second_factor=factor)
        else:  # the sign-in is new, the authentication is not
            ends = validated_at + self._max_s
            inherited = InheritedLimits(authentication.auth_time, ends, sign_in_id=new.sign_in_id, second_factor=factor)
        return IssuedSessionTokens(new.token, new.stoken, new.life, validated_at, new.sign_in_id, inherited)

    def _kind_and_life(self, options: LoginOptions, source: TokenSource | None) -> tuple[str, int]:
        kind, life = "long", self._long_s
        if options.short_token or (source and source.kind == "bound"):
            kind, life = "bound", BOUND_S
        elif source and source.kind == "short":
            kind, life = "short", self._short_s
        if source and source.kind != "long":
            life = min(life, source.life)
        return kind, min(life, source.sign_in_life if source else self._max_s)
