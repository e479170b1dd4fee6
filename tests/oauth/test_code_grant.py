"""The authorization code grant without a server: what is refused, and what is logged."""

import pytest
from structlog.testing import capture_logs

from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.errors import InvalidClient, InvalidDpopProof, InvalidGrant, InvalidRequest, UnauthorizedClient
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.tokens.statements import MAX_CODE_FAILURES
from sso.services import Services
from tests.oauth.in_process import CREDENTIALS, URI, apply_client, new_code, redeem

WRONG = ClientCredentials("shop", secrets=("another secret",))


@pytest.mark.parametrize("missing", ["code", "redirect_uri"])
async def test_code_and_redirect_uri_are_required(services: Services, missing: str) -> None:
    request = TokenRequest(grant_type="authorization_code", code=await new_code(services), redirect_uri=URI)
    request = request.model_copy(update={missing: ""})
    with pytest.raises(InvalidRequest, match=f"{missing} is required"):
        await services.oauth.token_endpoint.respond(request, CREDENTIALS)


async def test_client_without_the_grant_is_refused(services: Services) -> None:
    code = await new_code(services)
    await apply_client(services, grant_types=["client_credentials"], application_id=1, profile="oidc")
    with pytest.raises(UnauthorizedClient):
        await redeem(services, CREDENTIALS, code)


async def test_code_is_blocked_after_failed_authentications_and_logged_once(services: Services) -> None:
    code = await new_code(services)
    with capture_logs() as logs:
        for _ in range(MAX_CODE_FAILURES + 1):
            with pytest.raises(InvalidClient):
                await redeem(services, WRONG, code)
    assert [entry["event"] for entry in logs if entry["event"].startswith("oauth.")] == ["oauth.code_blocked"]
    with pytest.raises(InvalidGrant):
        await redeem(services, CREDENTIALS, code)


async def test_client_that_must_bind_its_tokens_sends_a_proof(services: Services) -> None:
    code = await new_code(services, profile="oidc")
    await apply_client(services, profile="oidc", dpop_bound_access_tokens=True)
    with pytest.raises(InvalidDpopProof):
        await redeem(services, CREDENTIALS, code)
