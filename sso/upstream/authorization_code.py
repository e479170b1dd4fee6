"""The authorization code flow with PKCE (RFC 6749, RFC 7636, RFC 9700), which OpenID Connect and OAuth 2.0 share."""

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from sso.upstream.errors import InvalidAnswer, SignInDenied
from sso.upstream.http_client import ProviderClient
from sso.upstream.model import Attempt, IdentityProvider

DENIED = frozenset(("access_denied", "interaction_required", "login_required", "consent_required"))
MAX_CODE = 4096


def authorization_request(endpoint: str, provider: IdentityProvider, attempt: Attempt, **more: str) -> str:
    """Returns the URL of the authorization request. PKCE is always sent; providers without it ignore it."""
    parameters = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": attempt.callback_url,
        "scope": " ".join(provider.scopes),
        "state": attempt.state,
        "code_challenge": attempt.code_challenge,
        "code_challenge_method": "S256",
        **more,
    }
    query = urlencode({name: value for name, value in parameters.items() if value})
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"


def code_of(answer: Mapping[str, str]) -> str:
    """Returns the code of an authorization response. Raises SignInDenied or InvalidAnswer."""
    if error := answer.get("error"):
        raise (SignInDenied if error in DENIED else InvalidAnswer)(f"authorization error: {_word(error)}")
    code = answer.get("code", "")
    if not code or len(code) > MAX_CODE:
        raise InvalidAnswer("authorization response: expected a code")
    return code


class TokenRefused(InvalidAnswer):
    """The token endpoint has refused the request. ``error``: its error code, or "" if it has sent none."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(f"token endpoint: status {status}, {error}")
        self.http_status, self.error = status, error


async def redeem_code(
    client: ProviderClient,
    endpoint: str,
    provider: IdentityProvider,
    secret: str | None,
    attempt: Attempt,
    code: str,
    auth_methods: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Exchanges the code for tokens. ``auth_methods``: what the provider accepts, if it is known."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": attempt.callback_url,
        "code_verifier": attempt.code_verifier,
    }
    headers = {}
    if secret is not None and (not auth_methods or "client_secret_basic" in auth_methods):
        pair = f"{quote(provider.client_id, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form |= {"client_id": provider.client_id} | ({"client_secret": secret} if secret is not None else {})
    return await request_tokens(client, endpoint, form, headers)


async def request_tokens(
    client: ProviderClient, endpoint: str, form: Mapping[str, str], headers: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the answer of a token endpoint. Raises TokenRefused if it has refused the request, and InvalidAnswer."""
    answer = await client.post(endpoint, form, headers)
    tokens = answer.json()
    # GitHub reports errors with status 200.
    if answer.status != 200 or "error" in tokens:
        raise TokenRefused(answer.status, _word(tokens.get("error")))
    if not isinstance(tokens.get("access_token"), str):
        raise InvalidAnswer("token endpoint: expected an access_token")
    return tokens


async def fetch_userinfo(client: ProviderClient, endpoint: str, tokens: Mapping[str, Any]) -> dict[str, Any]:
    answer = await client.get(endpoint, {"Authorization": f"Bearer {tokens['access_token']}"})
    if answer.status != 200:
        raise InvalidAnswer(f"userinfo endpoint: status {answer.status}")
    return answer.json()


def kept_tokens(tokens: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what is stored of a token response if the provider is configured to keep tokens."""
    names = ("access_token", "refresh_token", "id_token", "token_type", "expires_in", "scope")
    return {name: tokens[name] for name in names if name in tokens}


def _word(error: object) -> str:
    """Returns an error code of a provider for the log, without anything that is not part of such a code."""
    text = error if isinstance(error, str) else ""
    return "".join(character for character in text[:64] if character.isalnum() or character in "_-.")
