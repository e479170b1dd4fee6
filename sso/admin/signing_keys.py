"""/api/admin/signing-keys: lists, rotates and retires the keys that sign tokens."""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from sso.admin.answers.service import SigningKeyJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    SearchQuery,
    list_response,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.audit import trail
from sso.config import Settings
from sso.core.algorithms import CHEAP_ALGORITHMS
from sso.core.errors import Conflict, NotFound
from sso.core.field_errors import FieldError
from sso.core.moments import rfc3339
from sso.db.transaction import Transaction
from sso.keys.rotation import KeyRotation, LastKey, longest_token_s
from sso.keys.store import KeyStore, StoredKey, key_states


class KeyRotationBody(AdminModel):
    algorithm: Literal["RS256", "ES256", "EdDSA"] = "RS256"
    side: bool = False  # a side key signs refresh tokens, and ID tokens of clients with that id_alg


class SigningKeyResource:
    def __init__(self, store: KeyStore, rotation: KeyRotation, settings: Settings) -> None:
        self._store = store
        self._rotation = rotation
        self._settings = settings

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Returns the keys in the order of their ids."""
        query: SearchQuery = request.query
        keys = sorted(await self._read(), key=lambda key: str(key["kid"]))
        following = [key for key in keys if key["kid"] > query.after and query.matches(key["kid"], key["state"])]
        shown = following[: query.limit]
        return list_response(shown, shown[-1]["kid"] if len(following) > query.limit else None)

    async def get(self, request: AdminRequest) -> AdminResponse:
        return record_response(await self._find(request.path["kid"]))

    async def rotate(self, request: AdminRequest) -> AdminResponse:
        """Adds a key, which signs a few seconds later. The keys before it stay published while they are needed."""
        body: KeyRotationBody = request.body
        if body.side and body.algorithm not in CHEAP_ALGORITHMS:
            raise FieldError(("side",), f"needs the algorithm {' or '.join(CHEAP_ALGORITHMS)}")
        before = await self._signing(body)

        async def record(tx: Transaction, kid: str) -> None:
            after = {"kid": kid, "algorithm": body.algorithm, "side": body.side}
            await trail.write(tx, request.caller.actor, "signing_key.rotate", kid, before, after)

        longest_s = longest_token_s(self._settings, body.algorithm, side=body.side)
        kid = await self._rotation.rotate(body.algorithm, longest_s, side=body.side, record=record)
        return record_response(await self._find(kid), 201)

    async def retire(self, request: AdminRequest) -> AdminResponse:
        """Retires a key at once: every token that it signed becomes invalid."""
        key = await self._find(request.path["kid"])

        async def check_version(tx: Transaction, kid: str) -> None:
            nonlocal key
            key = await self._find(kid, tx)
            request.check_version(key)
            if key["state"] == "retired":
                raise Conflict("the key is retired already")

        async def record(tx: Transaction, kid: str) -> None:
            await trail.write(tx, request.caller.actor, "signing_key.retire", kid, key, key | {"state": "retired"})

        try:
            await self._rotation.retire(key["kid"], record, check_version)
        except LastKey:
            raise Conflict("this is the key that signs: rotate first, then retire it") from None
        return record_response(await self._find(key["kid"]))

    async def _read(self, tx: Transaction | None = None) -> Sequence[JsonRecord]:
        keys = await self._store.all(tx)
        states = key_states(keys)
        return [_key_json(key, states[key.kid]) for key in keys]

    async def _find(self, kid: str, tx: Transaction | None = None) -> JsonRecord:
        for key in await self._read(tx):
            if key["kid"] == kid:
                return key
        raise NotFound("signing key not found")

    async def _signing(self, body: KeyRotationBody) -> JsonRecord | None:
        """Returns the key that the new one replaces."""
        for key in await self._read():
            same_chain = key["side"] == body.side and (not body.side or key["algorithm"] == body.algorithm)
            if same_chain and key["state"] == "signing":
                return key
        return None


def _key_json(key: StoredKey, state: str) -> JsonRecord:
    """``retires`` is when the key is no longer published; None if that is not known yet."""
    return {
        "kid": key.kid,
        "algorithm": key.algorithm,
        "side": key.side,
        "state": state,
        "created": rfc3339(key.created),
        "signs_from": rfc3339(key.signs_from),
        "retires": rfc3339(key.published_until) if key.published_until else None,
        "retired": rfc3339(key.retired) if key.retired else None,
    }


def signing_key_routes(resource: SigningKeyResource) -> tuple[AdminRoute, ...]:
    view, manage, answer = AdminRight.VIEW_KEYS, AdminRight.MANAGE_KEYS, AnswerShape(SigningKeyJson)
    return (
        AdminRoute("GET", "/signing-keys", view, resource.list, SearchQuery, answer=answer),
        AdminRoute(
            "POST",
            "/signing-keys",
            manage,
            resource.rotate,
            body=KeyRotationBody,
            answer=replace(answer, status=201),
            operation="rotate_signing_key",
            summary="Rotate a signing key",
            example={"algorithm": "RS256"},
        ),
        AdminRoute("GET", "/signing-keys/<kid>", view, resource.get, answer=answer),
        AdminRoute(
            "DELETE", "/signing-keys/<kid>", manage, resource.retire, answer=answer, operation="retire_signing_key"
        ),
    )
