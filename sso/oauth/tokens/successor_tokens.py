"""The tokens that a refresh issues. A refresh with an idempotency key gets the same ones again for a minute.

Only digests of tokens are stored, so the same tokens cannot be read back. With an idempotency key they are not random
but derived from the refresh token and the key, with a secret of the service, so clients cannot derive them.
"""

import base64
import re

from msgspec import Struct

from sso.core.encryption import Keyring
from sso.core.ids import secret_token
from sso.oauth.errors import InvalidRequest
from sso.oauth.model import UNRESTRICTED, TokenRestrictions
from sso.oauth.tokens.issuer import PresentedRefreshToken

RETRY_S = 60
_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


class SuccessorTokens(Struct, frozen=True):
    access_token: str
    token_id: str  # identifies the refresh token
    retry_s: int = 0  # how long after the rotation a repeated request gets the same tokens


def successor_tokens(
    keyring: Keyring,
    presented: PresentedRefreshToken,
    idempotency_key: str | None,
    restrictions: TokenRestrictions = UNRESTRICTED,
    *,
    rotates: bool = True,
) -> list[SuccessorTokens]:
    """Returns the tokens. Raises InvalidRequest if the idempotency key is malformed.

    While the master key is changed, further ones follow, which a node with another first key may have issued.

    A request with the same idempotency key but other restrictions is another request. If the refresh token is not
    replaced, a request can be repeated without a key.
    """
    if not rotates:
        return [SuccessorTokens(secret_token(), presented.token_id)]
    if idempotency_key is None:
        return [SuccessorTokens(secret_token(), secret_token())]
    if not _KEY.fullmatch(idempotency_key):
        raise InvalidRequest("Idempotency-Key: expected 1 to 255 printable ASCII characters without spaces")
    source = f"{presented.grant_id} {presented.token_id} {idempotency_key}"
    if restrictions != UNRESTRICTED:
        source += f" {restrictions.dpop_jkt} {restrictions.resource_text}"
    if restrictions.scopes:
        source += f"\n{restrictions.scope_text}"  # no resource has a line break
    macs = zip(keyring.macs("oauth access token", source), keyring.macs("oauth refresh token", source), strict=False)
    return [SuccessorTokens(_text(access), _text(refresh), RETRY_S) for access, refresh in macs]


def _text(mac: bytes) -> str:
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
