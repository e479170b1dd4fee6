"""Steam: OpenID 2.0, whose answers are verified by asking the provider (check_authentication, §11.4.2).

What is used of an answer is in its list of signed fields, and is compared with what was sent before Steam is asked.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

from sso.upstream.attempt_store import AttemptStore
from sso.upstream.errors import InvalidAnswer, SignInDenied
from sso.upstream.http_client import ProviderClient
from sso.upstream.model import Attempt, IdentityProvider, UpstreamIdentity

NAMESPACE = "http://specs.openid.net/auth/2.0"
IDENTIFIER_SELECT = "http://specs.openid.net/auth/2.0/identifier_select"
SIGNED = frozenset(("op_endpoint", "claimed_id", "identity", "return_to", "response_nonce", "assoc_handle"))
MAX_NONCE_AGE_S = 600
MAX_FIELDS, MAX_VALUE = 32, 2048
_NONCE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)[!-~]{0,200}", re.ASCII)


class Steam:
    def __init__(self, client: ProviderClient, attempts: AttemptStore, base_url: str) -> None:
        self._client = client
        self._attempts = attempts
        self._base_url = base_url

    async def authorization_url(self, provider: IdentityProvider, attempt: Attempt) -> str:
        parameters = {
            "openid.ns": NAMESPACE,
            "openid.mode": "checkid_setup",
            "openid.return_to": _return_to(attempt),
            "openid.realm": self._base_url,
            "openid.identity": IDENTIFIER_SELECT,
            "openid.claimed_id": IDENTIFIER_SELECT,
        }
        return f"{self._client.check_url(endpoint(provider), 'issuer')}?{urlencode(parameters)}"

    async def identify(
        self, provider: IdentityProvider, secret: str | None, attempt: Attempt, answer: Mapping[str, str]
    ) -> UpstreamIdentity:
        fields = {name.removeprefix("openid."): value for name, value in answer.items() if name.startswith("openid.")}
        steam_id = _check_fields(provider, attempt, fields)
        await self._check_nonce_age(fields["response_nonce"])
        await self._check_authentication(provider, fields)
        if not await self._attempts.use_nonce(provider.provider_id, fields["response_nonce"], 2 * MAX_NONCE_AGE_S):
            raise InvalidAnswer("response_nonce: was used before")
        return UpstreamIdentity(subject=steam_id, name=steam_id)

    async def _check_nonce_age(self, nonce: str) -> None:
        match = _NONCE.fullmatch(nonce)
        try:
            issued = datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) if match else None
        except ValueError:
            issued = None
        if issued is None:
            raise InvalidAnswer("response_nonce: expected a time and further characters")
        if abs(self._attempts.now() - issued.timestamp()) > MAX_NONCE_AGE_S:
            raise InvalidAnswer("response_nonce: too old")

    async def _check_authentication(self, provider: IdentityProvider, fields: Mapping[str, str]) -> None:
        """Asks the provider whether it has made this answer, and has not confirmed it before."""
        form = {f"openid.{name}": value for name, value in fields.items()} | {"openid.mode": "check_authentication"}
        answer = await self._client.post(endpoint(provider), form, {"Accept": "text/plain"})
        lines = [line.partition(":") for line in answer.body.decode("utf-8", "replace").splitlines()]
        verdicts = [value for name, _, value in lines if name == "is_valid"]
        if answer.status != 200 or verdicts != ["true"]:
            raise InvalidAnswer("check_authentication: the provider does not confirm the answer")


def _check_fields(provider: IdentityProvider, attempt: Attempt, fields: Mapping[str, str]) -> str:
    """Returns the SteamID of an answer whose fields are as they must be. Raises SignInDenied or InvalidAnswer."""
    if fields.get("mode") == "cancel":
        raise SignInDenied("openid.mode: cancel")
    if len(fields) > MAX_FIELDS or any(len(value) > MAX_VALUE for value in fields.values()):
        raise InvalidAnswer("answer: too long")
    expected = {
        "ns": NAMESPACE,
        "mode": "id_res",
        "op_endpoint": endpoint(provider),
        "return_to": _return_to(attempt),
        "identity": fields.get("claimed_id"),
    }
    for name, value in expected.items():
        if fields.get(name) != value:
            raise InvalidAnswer(f"openid.{name}: not the expected value")
    signed = fields.get("signed", "").split(",")
    if len(set(signed)) != len(signed) or not set(signed) >= SIGNED or not fields.keys() >= set(signed) | {"sig"}:
        raise InvalidAnswer("openid.signed: not the expected fields")
    claimed = re.fullmatch(re.escape(provider.issuer) + r"/id/([0-9]{17})", fields["claimed_id"], re.ASCII)
    if claimed is None:
        raise InvalidAnswer("openid.claimed_id: expected a SteamID")
    return claimed[1]


def endpoint(provider: IdentityProvider) -> str:
    return f"{provider.issuer}/login"


def _return_to(attempt: Attempt) -> str:
    return f"{attempt.callback_url}?{urlencode({'state': attempt.state})}"
