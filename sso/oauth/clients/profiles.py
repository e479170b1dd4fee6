"""The profiles of clients: what each of them demands of a client, and what it changes in the protocol."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from sso.core.algorithms import CLIENT_ALGORITHMS, FAPI_ALGORITHMS

# strict: exactly the protocol of §4.2. oidc: what standard OpenID Connect libraries expect. fapi2: the same, with
# everything that the FAPI 2.0 Security Profile demands.
Profile = Literal["fapi2", "oidc", "strict"]


class ProfileRules(Struct, frozen=True):
    is_standard: bool = True  # OpenID Connect and the RFCs apply, and not §4.2
    # The attributes that its clients have, whatever else is entered.
    attributes: Mapping[str, Any] = field(default_factory=dict)
    signing_algorithms: tuple[str, ...] = ("", "ES256", "EdDSA")  # of tokens that are issued; the first is the default
    algorithms: tuple[str, ...] = CLIENT_ALGORITHMS  # of assertions and DPoP proofs
    has_exact_redirect_uris: bool = False  # no redirect_hosts, and no other ports on the machine of the user
    needs_pkce: bool = False  # also a client that authenticates
    allows_devices: bool = True
    code_s: int | None = None  # the lifetime of a code; None: that of the authorization request
    only_issuer_as_audience: bool = False  # of assertions, as a string
    needs_dpop_nonce: bool = False
    binds_refresh_tokens: bool = False  # to the key of the DPoP proof, also those of a client that authenticates
    rotates_refresh_tokens: bool = True


RULES: Mapping[str, ProfileRules] = {
    "strict": ProfileRules(is_standard=False, allows_devices=False),
    "oidc": ProfileRules(),
    "fapi2": ProfileRules(
        attributes={
            "token_endpoint_auth_method": "private_key_jwt",
            "require_pushed_authorization_requests": True,
            "dpop_bound_access_tokens": True,
        },
        signing_algorithms=("ES256", "EdDSA"),
        algorithms=FAPI_ALGORITHMS,
        has_exact_redirect_uris=True,
        needs_pkce=True,
        allows_devices=False,
        code_s=60,
        only_issuer_as_audience=True,
        needs_dpop_nonce=True,
        binds_refresh_tokens=True,
        rotates_refresh_tokens=False,
    ),
}
