"""The sessions of devices, which are game sessions with an OAuth client in place of an application; their tokens."""

import re
import secrets
import uuid
from collections.abc import Sequence

from sso.core.ban import Ban
from sso.core.hidden_fields import RecordWithHiddenFields
from sso.core.ids import SECRET_TOKEN, digest, secret_token
from sso.core.net import Address
from sso.db.database import Database
from sso.db.known_users import REMEMBER_USERS, delete_grants
from sso.db.statement import Statement
from sso.gsid.match_code import new_match_code
from sso.gsid.model import Claim, Claimed
from sso.gsid.session_store import DELETED_AFTER_S, RETENTION
from sso.oauth.model import DEVICE_CODE, Client, IssuedTokens, TokenRestrictions
from sso.oauth.tokens.statements import CLOCK, ISSUED, NEW_GRANTS, USER_CLAIMS
from sso.oauth.tokens.store import TokenLifetimes

# Consonants: the codes spell no words, and no letter looks like a digit (RFC 8628 section 6.1).
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
LENGTH = 8
MAX_TYPED = 64
_SEPARATORS = re.compile(r"[\s\-\u2010-\u2015_.]+")

INTERVAL_S = 5  # between two requests of a device (RFC 8628 section 3.5), and what `slow_down` adds to it
TOLERANCE_S = 0.2  # a request may come this much before its time, because clocks and networks vary
_DEVICE_CODE = re.compile(rf"([0-9a-f-]{{36}})\.({SECRET_TOKEN})", re.ASCII)

# The endpoints of games, also in the previous release, find no proof for this session: nothing can be signed with
# an empty key, and `location` is not the digest of the secret alone.
_CREATE = Statement(
    """WITH client AS (
        SELECT client_id FROM oauth_clients WHERE client_id = :client_id FOR KEY SHARE
    ), created AS (
        INSERT INTO game_sessions (gsid, location, match, address, public_key, client_id, scopes, user_code, interval_s,
            ends, expires)
        SELECT :gsid, :location, :match, :address, '', client_id, :scopes, :user_code, :interval_s,
            now() + make_interval(secs => :lifetime_s), now() + make_interval(secs => :kept_s)
        FROM client
        ON CONFLICT (user_code) WHERE client_id IS NOT NULL DO NOTHING RETURNING gsid
    )
    SELECT created.gsid FROM client LEFT JOIN created ON true"""
)
_FIND_BY_USER_CODE = Statement(
    """SELECT gsid FROM game_sessions
    WHERE user_code = :user_code AND client_id IS NOT NULL AND status = 'pending' AND ends > now()"""
)
# Counts and judges a request in one statement. A request that is held does not count.
_COUNT_REQUEST = Statement(
    f"""WITH locked AS (
        SELECT gsid, NOT CAST(:held AS boolean) AND status = 'pending' AND coalesce(
            polled_at > now() - make_interval(secs => interval_s - {TOLERANCE_S}), false) AS early
        FROM game_sessions WHERE gsid = :gsid AND location = :location AND client_id = :client_id
            AND ends > now() - {RETENTION} FOR UPDATE
    )
    UPDATE game_sessions s SET polled_at = CASE WHEN :held THEN s.polled_at ELSE now() END,
        interval_s = s.interval_s + CASE WHEN locked.early THEN {INTERVAL_S} ELSE 0 END
    FROM locked WHERE s.gsid = locked.gsid RETURNING locked.early"""
)
_SLOW_DOWN = Statement(f"UPDATE game_sessions SET interval_s = interval_s + {INTERVAL_S} WHERE gsid = :gsid")
# The user is locked before the session, as in all statements that issue something.
_ISSUE_TOKENS = Statement(
    f"""WITH {CLOCK}, locked_user AS (
        SELECT user_id, bans FROM users WHERE user_id = :user_id AND valid_from = :valid_from AND NOT disabled FOR SHARE
    ), locked_session AS (
        -- The session, if this claim still has it.
        SELECT s.* FROM game_sessions s WHERE s.gsid = :gsid AND s.claim_id = :claim_id AND s.status = 'delivered'
            AND s.claimed_until IS NOT NULL AND s.auth_time IS NOT NULL
            AND s.user_id = (SELECT user_id FROM locked_user) FOR UPDATE
    ), deleted AS (
        -- The grant of an earlier claim, whose answer was lost.
        DELETE FROM oauth_grants
        WHERE id = (SELECT grant_id FROM locked_session) AND id <> CAST(:claim_id AS text)
        RETURNING client_id, user_id, act
    ), {REMEMBER_USERS}, redeemed AS (
        UPDATE game_sessions s SET grant_id = :claim_id
        FROM locked_session l JOIN users u USING (user_id) JOIN oauth_clients c USING (client_id)
        WHERE s.gsid = l.gsid AND NOT c.disabled
            AND ban_in_force((SELECT bans FROM locked_user), ARRAY[c.application_id]) IS NULL
            AND '{DEVICE_CODE}' = ANY (c.grant_types)
            AND (CAST(:dpop_jkt AS text) IS NOT NULL OR NOT c.dpop_bound_access_tokens)
        RETURNING s.grant_id, CAST(:access_digest AS bytea) AS access_digest, CAST(:access_s AS bigint) AS access_s,
            CAST(:refresh_s AS bigint) AS refresh_s, CAST(:grant_max_s AS bigint) AS grant_max_s,
            CASE WHEN 'offline_access' = ANY (l.scopes) AND 'refresh_token' = ANY (c.grant_types)
                THEN CAST(:token_id AS text) END AS current_token_id,
            c.client_id, c.profile, c.id_alg, c.access_token_format, u.user_id, {USER_CLAIMS}, '' AS redirect_uri,
            l.scopes, CAST(NULL AS text) AS nonce, l.auth_time, l.auth, s.gsid AS sid,
            c.backchannel_logout_uri <> '' AS is_notified, CAST(:grant_max_s AS bigint) AS session_s,
            greatest((SELECT t FROM clock), u.valid_from) AS issued, CAST(:dpop_jkt AS text) AS dpop_jkt,
            CAST(:grant_jkt AS text) AS grant_jkt, CAST('{{}}' AS text[]) AS grant_resources,
            CAST(:resources AS text[]) AS resources, '' AS claims
    ), {NEW_GRANTS}
    SELECT redeemed.*, {ISSUED} FROM redeemed JOIN new_grants ON new_grants.id = redeemed.grant_id, clock"""
)
_BAN = Statement(
    """SELECT ban_in_force(u.bans, ARRAY[c.application_id]) FROM users u, oauth_clients c
    WHERE u.user_id = :user_id AND c.client_id = :client_id"""
)
_REVOKE_TOKENS = Statement(delete_grants("WHERE g.id = :claim_id"))


def new_user_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def format_user_code(user_code: str) -> str:
    """Returns the code as people see it, with a dash in the middle."""
    return f"{user_code[: LENGTH // 2]}-{user_code[LENGTH // 2 :]}"


def parse_user_code(typed: str) -> str | None:
    """Returns the code that was typed, in any case and with or without dashes and spaces, or None if it is no code."""
    if len(typed) > MAX_TYPED or not (text := _SEPARATORS.sub("", typed)).isascii():
        return None
    user_code = text.upper()
    return user_code if len(user_code) == LENGTH and set(user_code) <= set(LETTERS) else None


class DeviceSession(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"secret", "user_code"})

    gsid: str
    secret: str
    user_code: str
    match: str

    @property
    def device_code(self) -> str:
        return f"{self.gsid}.{self.secret}"


class DeviceSessionStore:
    def __init__(self, database: Database, lifetime_s: int) -> None:
        self._database = database
        self.lifetime_s = lifetime_s

    async def create(self, client_id: str, scopes: Sequence[str], address: Address) -> DeviceSession | None:
        """Returns None if the client does not exist."""
        while True:
            session = DeviceSession(str(uuid.uuid4()), secret_token(), new_user_code(), new_match_code())
            row = await self._database.row(
                _CREATE,
                gsid=session.gsid,
                location=_secret_digest(session.secret),
                match=session.match,
                address=str(address),
                client_id=client_id,
                scopes=list(scopes),
                user_code=session.user_code,
                interval_s=INTERVAL_S,
                lifetime_s=float(self.lifetime_s),
                kept_s=float(self.lifetime_s + DELETED_AFTER_S),
            )
            if row is None:
                return None
            if row["gsid"] is not None:  # otherwise another session has the same user code
                return session

    async def find_by_user_code(self, user_code: str) -> str | None:
        """Returns the gsid of the pending session with this code, or None if there is none."""
        gsid: str | None = await self._database.value(_FIND_BY_USER_CODE, user_code=user_code)
        return gsid

    async def count_request(self, device_code: str, client_id: str, *, held: bool) -> tuple[str, bool] | None:
        """Returns the gsid, and whether the request came too early. An early request makes the interval longer.

        Returns None if the client has no session with this device code.
        """
        match = _DEVICE_CODE.fullmatch(device_code)
        if match is None:
            return None
        gsid, location = match[1], _secret_digest(match[2])
        row = await self._database.row(_COUNT_REQUEST, gsid=gsid, location=location, client_id=client_id, held=held)
        return (gsid, row["early"]) if row else None

    async def slow_down(self, gsid: str) -> None:
        """Makes the interval of the session longer."""
        await self._database.value(_SLOW_DOWN, gsid=gsid)


class DeviceTokenStore:
    def __init__(self, database: Database, lifetimes: TokenLifetimes) -> None:
        self._database = database
        self._lifetimes = lifetimes

    async def issue(
        self, claim: Claim, claimed: Claimed, client: Client, restrictions: TokenRestrictions, access_token: str
    ) -> IssuedTokens | None:
        """Issues tokens under the claim. Returns None if the user or the client may not get tokens."""
        lifetimes = self._lifetimes
        row = await self._database.row(
            _ISSUE_TOKENS,
            gsid=claim.gsid,
            claim_id=claim.claim_id,
            user_id=claimed.user.user_id,
            valid_from=claimed.user.valid_from,
            access_digest=digest(access_token),
            token_id=secret_token(),
            access_s=lifetimes.access_s,
            refresh_s=lifetimes.refresh_s,
            grant_max_s=lifetimes.grant_max_s,
            dpop_jkt=restrictions.dpop_jkt,
            grant_jkt=restrictions.grant_jkt(client),
            resources=list(restrictions.resources),
        )
        return None if row is None else IssuedTokens.from_row(row)

    async def ban_of(self, claimed: Claimed, client: Client) -> Ban | None:
        """Returns the ban because of which the user gets no tokens of the client."""
        ban = await self._database.value(_BAN, user_id=claimed.user.user_id, client_id=client.client_id)
        return Ban.from_json(ban) if ban else None

    async def revoke(self, claim: Claim) -> None:
        await self._database.value(_REVOKE_TOKENS, claim_id=claim.claim_id)


def _secret_digest(secret: str) -> bytes:
    return digest(f"device:{secret}")
