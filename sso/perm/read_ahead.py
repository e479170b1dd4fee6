"""Reads the credentials of a caller and what a read needs with one statement, before the caller is authenticated.

The statement is only run for a request whose credentials may be valid: a user JWT with a valid signature, or an access
key. What it returns is used only for these credentials, and only in this request.
"""

from typing import Any

from sso.accounts.token_holder import TokenHolder
from sso.accounts.user_jwt import UserJwts
from sso.accounts.user_jwt_claims import sign_in_of
from sso.core.ids import digest, is_user_id
from sso.perm.accepted_credentials import EndpointRule, Subject
from sso.perm.caller import EXPIRED_FOR_S, PresentedCredentials
from sso.perm.stores.access_keys import AccessKey, AccessKeys
from sso.perm.stores.caller_read import CallerReads, CallerRow, ReadQuery


class PrefetchedLookup:
    """Answers from the row that was read for this request."""

    __slots__ = ("_caller_row", "_claims", "_jwts", "_keys", "_token", "facts")

    def __init__(
        self, caller_row: CallerRow, jwts: UserJwts, keys: AccessKeys, token: str, claims: dict[str, Any] | None
    ) -> None:
        self._caller_row = caller_row
        self._jwts = jwts
        self._keys = keys
        self._token = token
        self._claims = claims
        self.facts = caller_row.facts

    def signed_claims(self, token: str) -> dict[str, Any] | None:
        return self._claims if token == self._token else None

    async def find_holder(self, user_id: str, sign_in_id: str) -> TokenHolder | None:
        query = self._caller_row.query
        if (user_id, sign_in_id) != (query.user_id, query.sign_in_id):
            return await self._jwts.find_holder(user_id, sign_in_id)
        return self._caller_row.holder

    async def find_access_key(self, secret: str) -> AccessKey | None:
        row = self._caller_row.row
        if digest(secret) != self._caller_row.query.key_digest:
            return await self._keys.authenticate(secret)
        if row["key_id"] is None:
            return None
        return await self._keys.use(row["key_id"], row["key_application_id"], is_stale=row["is_stale"])


class ReadAhead:
    def __init__(self, reads: CallerReads, jwts: UserJwts, keys: AccessKeys) -> None:
        self._reads = reads
        self._jwts = jwts
        self._keys = keys

    async def begin(
        self, credentials: PresentedCredentials, rule: EndpointRule, application_id: int, fields: dict[str, Any]
    ) -> PrefetchedLookup | None:
        """Reads what a request about this application needs; 0 stands for none.

        Returns None for a request that may write, and if the credentials cannot be valid: nothing is read for them.
        """
        is_own_information = rule.subject is Subject.CALLER
        if not is_own_information and not (rule.subject is Subject.USER_DATA and rule.is_get(fields)):
            return None
        key = credentials.access_key
        token = credentials.jwt if key else credentials.bearer or credentials.jwt
        claims = self._jwts.signed_claims(token, EXPIRED_FOR_S) if token else None
        if claims is None and not key:
            return None
        user_id, sign_in_id = (claims["sub"], sign_in_of(claims)) if claims else ("", "")
        query = ReadQuery(
            user_id,
            sign_in_id,
            digest(key) if key else None,
            application_id,
            _target_id(fields, user_id),
        )
        row = await (self._reads.read_author(query) if is_own_information else self._reads.read(query))
        return PrefetchedLookup(row, self._jwts, self._keys, token, claims)


def _target_id(fields: dict[str, Any], user_id: str) -> str | None:
    """Returns the user whose data the request reads, or the first one that it asks about.

    Returns None for the caller, and if the field is not valid.
    """
    data = fields.get("data")
    questions = data.get("questions") if isinstance(data, dict) else None
    named = questions[0] if isinstance(questions, list) and questions else data
    target_id = named.get("user_id") if isinstance(named, dict) else None
    return target_id if isinstance(target_id, str) and target_id != user_id and is_user_id(target_id) else None
