"""Session tokens: ``token`` and ``stoken`` of the authentication data, accepted in place of login and password.

Each belongs to a sign-in (table ``sign_ins``). A credential that derives from a token keeps the token's restrictions:
the kind and end of a short or bound one, its addresses and applications, and time and method of the authentication.
"""

from dataclasses import dataclass, replace

from sso.accounts.authentication_context import AuthenticationContext, by_session_token
from sso.accounts.errors import InvalidCredentials
from sso.accounts.issue_guard import NOW, guarded_by_user
from sso.accounts.model import LoginOptions, SignedIn, User
from sso.accounts.user_jwt import InheritedLimits
from sso.core.errors import ApiError
from sso.core.ids import digest, record_id, secret_token
from sso.core.net import Address, intersection, parse_address, parse_network
from sso.db.batch.statement import BatchStatement, by_index
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.telemetry.counters import LOGINS

BOUND_S = 300
MAX_USER_TOKENS = 100  # session tokens of one user; the least recently used end
MAX_USER_SIGN_INS = 100
MAX_SIGN_IN_TOKENS = 10  # session tokens of one sign-in: a program that renews often must not end the tokens of others

# A token beyond MAX_USER_TOKENS is rejected here, even if concurrent sign-ins have left it in the table.
_LOOK_UP = BatchStatement(
    f"""SELECT item.n, u.*, t.kind, t.address, t.ips, t.app_id, t.gapp_id, t.sign_in, s.auth,
        s.second_factor,
        CAST(floor(extract(epoch FROM t.expires - now())) AS int) AS life,
        coalesce(s.auth_time, CAST(floor(extract(epoch FROM s.created)) AS bigint)) AS auth_time,
        CAST(floor(extract(epoch FROM s.created - now()) + item.max_s) AS int) AS sign_in_life
    FROM {{items}}
    JOIN session_tokens t ON t.digest = item.digest JOIN sign_ins s ON s.id = t.sign_in
    JOIN users u ON u.user_id = t.user_id
    WHERE t.expires > now() + interval '1 second' AND s.created > now() - make_interval(secs => item.max_s - 1)
        AND NOT s.ended AND NOT u.disabled AND {MAX_USER_TOKENS} > (
            SELECT count(*) FROM (
                SELECT 1 FROM session_tokens newer
                WHERE newer.user_id = t.user_id AND (newer.used, newer.digest) > (t.used, t.digest)
                    AND newer.expires > now() LIMIT {MAX_USER_TOKENS}
            ) counted
        )""",
    columns={"digest": "bytea", "max_s": "float"},
)
_ISSUE_COLUMNS = {
    "token": "bytea",
    "kind": "text",
    "address": "text",
    "life": "float",
    "stoken": "bytea",  # NULL for a bound token, which is issued alone
    "short_life": "float",
    "sign_in": "text",
    "source": "bytea",  # digest of the token that is renewed, NULL for a new sign-in
    "auth": "text",
    "auth_time": "bigint",  # NULL: now; 0: no proof is known
    "second_factor": "bool",
    "app_id": "bigint",
    "gapp_id": "bigint",
    "ips": "text",  # separated by commas
    "max_s": "float",
}
_ISSUE = f""", live_sign_ins AS (
        -- The sign-ins to renew. The lock makes a renewal and the end of the sign-in wait for each other.
        SELECT id FROM sign_ins WHERE id = ANY (ARRAY(SELECT sign_in FROM valid_items WHERE source IS NOT NULL))
            AND NOT ended ORDER BY id FOR NO KEY UPDATE {{if_locked}}
    ), renewed_sign_ins AS (
        UPDATE sign_ins s SET last_used = now(), address = i.address,
            expires = s.created + make_interval(secs => i.max_s)
        FROM valid_items i WHERE {by_index("s.id", "i.sign_in")} AND s.id = ANY (ARRAY(SELECT id FROM live_sign_ins))
    ), new_sign_ins AS (
        INSERT INTO sign_ins (id, user_id, last_used, expires, address, auth, auth_time, second_factor, app_id, gapp_id)
        SELECT sign_in, user_id, now(), now() + make_interval(secs => max_s), address, auth, auth_time, second_factor,
            app_id, gapp_id FROM valid_items WHERE source IS NULL
        ON CONFLICT (id) DO NOTHING RETURNING id -- a sign-in may be ended before it starts: see gsid/claim_store.py
    ), accepted AS (
        -- The items that get tokens: their user is valid and their sign-in has not ended.
        SELECT * FROM valid_items WHERE sign_in = ANY (ARRAY(SELECT id FROM new_sign_ins UNION ALL
            SELECT id FROM live_sign_ins))
    ), new_tokens AS (
        INSERT INTO session_tokens (digest, user_id, kind, address, expires, sign_in, ips, app_id, gapp_id)
        SELECT token, user_id, kind, CASE kind WHEN 'bound' THEN address END, now() + make_interval(secs => life),
            sign_in, string_to_array(ips, ','), app_id, gapp_id FROM accepted
        UNION ALL
        SELECT stoken, user_id, 'short', NULL, now() + make_interval(secs => short_life),
            sign_in, string_to_array(ips, ','), app_id, gapp_id FROM accepted WHERE stoken IS NOT NULL
    ), new_events AS (
        INSERT INTO account_events (user_id, kind, address, detail)
        SELECT user_id, 'signed_in', address, jsonb_build_object('auth', auth, 'app_id', app_id, 'gapp_id', gapp_id)
        FROM accepted WHERE source IS NULL
    ), presented_tokens AS (
        -- The renewed tokens, which become the most recently used ones.
        SELECT digest FROM session_tokens WHERE digest = ANY (ARRAY(SELECT source FROM accepted)) FOR UPDATE SKIP LOCKED
    ), used_tokens AS (
        UPDATE session_tokens SET used = now() WHERE digest = ANY (ARRAY(SELECT digest FROM presented_tokens))
    ), owners AS (
        SELECT user_id, count(*) AS added FROM accepted GROUP BY user_id
    ), surplus_tokens AS (
        -- Tokens beyond the limits of a user or a sign-in, counting the new ones, which are not visible here yet.
        SELECT t.digest FROM owners CROSS JOIN LATERAL (
            SELECT digest, sign_in, row_number() OVER (ORDER BY used DESC, digest DESC) AS rank,
                row_number() OVER (PARTITION BY sign_in ORDER BY used DESC, digest DESC) AS rank_in_sign_in
            FROM session_tokens WHERE user_id = owners.user_id
        ) t WHERE t.rank > {MAX_USER_TOKENS} - 2 * owners.added OR (
            t.rank_in_sign_in > {MAX_SIGN_IN_TOKENS} - 2 AND t.sign_in = ANY (ARRAY(SELECT sign_in FROM accepted))
        )
    ), dropped_tokens AS (
        -- The surplus without the renewed tokens and without rows that another transaction holds.
        SELECT digest FROM session_tokens WHERE digest = ANY (ARRAY(SELECT digest FROM surplus_tokens))
            AND digest <> ALL (ARRAY(SELECT source FROM accepted WHERE source IS NOT NULL)) FOR UPDATE SKIP LOCKED
    ), deleted_tokens AS (
        DELETE FROM session_tokens WHERE digest = ANY (ARRAY(SELECT digest FROM dropped_tokens))
    ), surplus_sign_ins AS (
        -- The least recently used sign-ins beyond the limit of a user.
        SELECT s.id FROM owners CROSS JOIN LATERAL (
            SELECT id FROM sign_ins WHERE user_id = owners.user_id AND NOT ended
            ORDER BY last_used DESC OFFSET greatest(0, {MAX_USER_SIGN_INS} - owners.added)
        ) s
    ), dropped_sign_ins AS (
        SELECT id FROM sign_ins WHERE id = ANY (ARRAY(SELECT id FROM surplus_sign_ins))
            AND id <> ALL (ARRAY(SELECT sign_in FROM accepted)) FOR UPDATE SKIP LOCKED
    ), deleted_sign_ins AS (
        DELETE FROM sign_ins WHERE id = ANY (ARRAY(SELECT id FROM dropped_sign_ins))
    )
    SELECT n, {NOW} AS validated_at FROM accepted"""


class OtherApplication(ApiError):
    """A session token was used for an application that it was not issued for."""

    status = 403
    code = "access_denied"
    message = "token: belongs to another application"


@dataclass(frozen=True)
class TokenSource:
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


@dataclass(frozen=True)
class IssuedSessionTokens:
    token: str
    stoken: str
    token_exp: int
    validated_at: int  # database time, in Unix seconds, at which the user was valid
    sign_in_id: str
    inherited: InheritedLimits  # the limits of a user JWT that is issued with these tokens


class SessionTokens:
    def __init__(self, database: Database, long_s: int, short_s: int, max_s: int) -> None:
        self._long_s = long_s
        self._short_s = short_s
        self._max_s = max_s  # from the original sign-in
        self._look_up = Batch(database, _LOOK_UP)
        self._issue = guarded_by_user(database, "accounts.session_tokens.ISSUE", _ISSUE, _ISSUE_COLUMNS)

    async def sign_in(self, token: str, address: Address) -> TokenSource:
        """Raises InvalidCredentials if the token is unknown, expired, revoked or bound to another address."""
        token_digest = digest(token)
        row = await self._look_up(digest=token_digest, max_s=float(self._max_s))
        if row is None or (row["kind"] == "bound" and parse_address(row["address"]) != address):
            LOGINS.add("token", "wrong_credentials")
            raise InvalidCredentials
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
        kind, life = self._kind_and_life(options, source)
        token, stoken = secret_token(), "" if kind == "bound" else secret_token()
        sign_in_id = source.sign_in_id if source else sign_in_id or record_id()
        ips = source.addresses(options.fixed_ips) if source else options.fixed_ips or None
        row = await self._issue(
            user_id=user.user_id,
            valid_from=user.valid_from,
            token=digest(token),
            kind=kind,
            address=str(options.address),
            life=float(life),
            stoken=digest(stoken) if stoken else None,
            short_life=float(min(life, self._short_s)),
            sign_in=sign_in_id,
            source=source.token_digest if source else None,
            auth=authentication.auth,
            auth_time=authentication.auth_time,
            second_factor=authentication.has_second_factor,
            app_id=options.app_id,
            gapp_id=options.gapp_id,
            ips=",".join(ips) if ips is not None else None,
            max_s=float(self._max_s),
        )
        if row is None:
            raise InvalidCredentials
        validated_at: int = row["validated_at"]
        factor = authentication.has_second_factor
        if source:
            ends = validated_at + min(source.life, source.sign_in_life)
            inherited = InheritedLimits(source.auth_time, ends, source.ips, sign_in_id, second_factor=factor)
        elif authentication.auth_time is None:
            inherited = InheritedLimits(auth_time=validated_at, sign_in_id=sign_in_id, second_factor=factor)
        else:  # the sign-in is new, the authentication is not
            ends = validated_at + self._max_s
            inherited = InheritedLimits(authentication.auth_time, ends, sign_in_id=sign_in_id, second_factor=factor)
        return IssuedSessionTokens(token, stoken, life, validated_at, sign_in_id, inherited)

    def _kind_and_life(self, options: LoginOptions, source: TokenSource | None) -> tuple[str, int]:
        kind, life = "long", self._long_s
        if options.short_token or (source and source.kind == "bound"):
            kind, life = "bound", BOUND_S
        elif source and source.kind == "short":
            kind, life = "short", self._short_s
        if source and source.kind != "long":
            life = min(life, source.life)
        return kind, min(life, source.sign_in_life if source else self._max_s)
