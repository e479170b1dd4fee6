"""The test plans of the OpenID Foundation for providers, with their modules: the list that tests and documentation use.

The names are those of the foundation's conformance suite. A module that does not apply has the reason, and the value of
the discovery document that proves it.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Module:
    name: str
    remark: str = ""  # shown in the documentation
    skip_if: tuple[str, Any] | None = None  # it does not apply because discovery has, or lacks, this value
    other_result: str = ""  # in place of passing

    @property
    def result(self) -> str:
        return self.other_result or ("does not apply" if self.skip_if else "passes")

    @property
    def test_name(self) -> str:
        return f"test_{self.name.replace('-', '_')}"


@dataclass(frozen=True)
class Plan:
    name: str
    title: str
    modules: tuple[Module, ...]
    variant: str = ""  # of the tests, if they run several times


def _without_scope(name: str, scope: str) -> Module:
    return Module(name, f"the scope ``{scope}`` is not in ``scopes_supported``", ("scopes_supported", scope))


BASIC = (
    Module("oidcc-server"),
    Module("oidcc-response-type-missing"),
    Module("oidcc-idtoken-signature"),
    Module(
        "oidcc-idtoken-unsigned",
        "``none`` is not in ``id_token_signing_alg_values_supported``",
        ("id_token_signing_alg_values_supported", "none"),
    ),
    Module("oidcc-userinfo-get"),
    Module("oidcc-userinfo-post-header"),
    Module("oidcc-userinfo-post-body"),
    Module("oidcc-ensure-request-without-nonce-succeeds-for-code-flow"),
    Module("oidcc-scope-profile"),
    Module("oidcc-scope-email"),
    _without_scope("oidcc-scope-address", "address"),
    _without_scope("oidcc-scope-phone", "phone"),
    _without_scope("oidcc-scope-all", "address"),
    Module(
        "oidcc-ensure-other-scope-order-succeeds", "named ``oidcc-alternate-happy-flow`` in newer versions of the suite"
    ),
    Module("oidcc-alternate-happy-flow"),
    Module("oidcc-display-page"),
    Module("oidcc-display-popup"),
    Module("oidcc-prompt-login"),
    Module("oidcc-prompt-none-not-logged-in"),
    Module("oidcc-prompt-none-logged-in"),
    Module("oidcc-max-age-1"),
    Module("oidcc-max-age-10000"),
    Module("oidcc-ensure-request-with-unknown-parameter-succeeds"),
    Module("oidcc-id-token-hint"),
    Module("oidcc-login-hint"),
    Module("oidcc-ui-locales"),
    Module("oidcc-claims-locales"),
    Module("oidcc-ensure-request-with-acr-values-succeeds"),
    Module("oidcc-codereuse"),
    Module("oidcc-codereuse-30seconds"),
    Module("oidcc-ensure-registered-redirect-uri"),
    Module("oidcc-ensure-post-request-succeeds"),
    Module("oidcc-server-client-secret-post"),
    Module("oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported", "rejected as unsupported"),
    Module("oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported", "rejected as unsupported"),
    Module("oidcc-claims-essential"),
    Module(
        "oidcc-ensure-request-object-with-redirect-uri",
        "``request_parameter_supported`` is false",
        ("request_parameter_supported", True),
    ),
    Module("oidcc-refresh-token"),
    Module("oidcc-ensure-request-with-valid-pkce-succeeds"),
)
LOGOUT = tuple(
    Module(f"oidcc-rp-initiated-logout{end}")
    for end in (
        "-discovery-endpoint-verification", "", "-bad-post-logout-redirect-uri", "-modified-id-token-hint",
        "-no-id-token-hint", "-no-params", "-no-post-logout-redirect-uri", "-no-state", "-only-state",
        "-query-added-to-post-logout-redirect-uri", "-bad-id-token-hint",
    )
)  # fmt: skip
PLANS = (
    Plan("oidcc-basic-certification-test-plan", "Basic OP", BASIC, "default"),
    Plan("oidcc-formpost-basic-certification-test-plan", "Form Post OP", BASIC, "form_post"),
    Plan("oidcc-config-certification-test-plan", "Config OP", (Module("oidcc-discovery-endpoint-verification"),)),
    Plan("oidcc-rp-initiated-logout-certification-test-plan", "RP-Initiated Logout OP", LOGOUT),
    Plan(
        "oidcc-backchannel-rp-initiated-logout-certification-test-plan",
        "Back-Channel Logout OP",
        (
            Module("oidcc-backchannel-logout-discovery-endpoint-verification"),
            Module("oidcc-backchannel-rp-initiated-logout"),
        ),
    ),
)
