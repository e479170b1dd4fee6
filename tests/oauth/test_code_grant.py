"""The authorization code grant without a server: what is refused, and what is logged."""

import pytest
from structlog.testing import capture_logs

from sso.oauth.errors import (
    InvalidClient,
    InvalidDpopProof,
    InvalidGrant,
    InvalidRequest,
    InvalidTarget,
    UnauthorizedClient,
)
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.tokens.statements import MAX_CODE_FAILURES
from sso.services import Services
from tests.oauth.in_process import (
    CREDENTIALS,
    URI,
    WRONG_CREDENTIALS,
    apply_client,
    ban_everybody,
    new_code,
    new_proof,
    redeem,
    refresh,
)


async def test_code_and_redirect_uri_are_required(services: Services) -> None:
    request = TokenRequest(grant_type="authorization_code", code=await new_code(services), redirect_uri=URI)
    for missing in ("code", "redirect_uri"):
        with pytest.raises(InvalidRequest, match=f"{missing} is required"):
            await services.oauth.token_endpoint.respond(request.model_copy(update={missing: ""}), CREDENTIALS)


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
                await redeem(services, WRONG_CREDENTIALS, code)
    assert [entry["event"] for entry in logs if entry["event"].startswith("oauth.")] == ["oauth.code_blocked"]
    with pytest.raises(InvalidGrant):
        await redeem(services, CREDENTIALS, code)


async def test_client_that_must_bind_its_tokens_sends_a_proof(services: Services) -> None:
    code = await new_code(services, profile="oidc")
    await apply_client(services, profile="oidc", dpop_bound_access_tokens=True)
    with pytest.raises(InvalidDpopProof):
        await redeem(services, CREDENTIALS, code)


async def test_wrong_redirect_uri_wrong_verifier_and_another_client_are_refused(services: Services) -> None:
    code = await new_code(services)
    with pytest.raises(InvalidGrant, match="redirect_uri differs"):
        await redeem(services, CREDENTIALS, code, uri=f"{URI}/elsewhere")
    for _ in range(MAX_CODE_FAILURES):
        with pytest.raises(InvalidGrant):
            await redeem(services, CREDENTIALS, code, verifier="v" * 43)
    with pytest.raises(InvalidGrant):  # too many failures
        await redeem(services, CREDENTIALS, code)


async def test_replayed_code_revokes_its_tokens_and_is_logged(services: Services) -> None:
    code = await new_code(services, profile="oidc")
    tokens = await redeem(services, CREDENTIALS, code)
    with capture_logs() as logs, pytest.raises(InvalidGrant):
        await redeem(services, CREDENTIALS, code)
    replayed = [entry for entry in logs if entry["event"] == "oauth.code_replayed"]
    assert [(entry["client"], len(entry["grant"])) for entry in replayed] == [("shop", 8)]
    with pytest.raises(InvalidGrant):
        await refresh(services, CREDENTIALS, tokens["refresh_token"])


async def test_code_for_a_key_is_redeemed_with_a_proof_of_this_key_once(services: Services) -> None:
    code = await new_code(services, query_fields={"dpop_jkt": "a" * 43}, profile="oidc")
    with pytest.raises(InvalidDpopProof):
        await redeem(services, CREDENTIALS, code)
    for _ in range(MAX_CODE_FAILURES - 1):
        with pytest.raises(InvalidGrant, match="the key of the DPoP proof differs from dpop_jkt"):
            await redeem(services, CREDENTIALS, code, proof=new_proof(services, "b" * 43))
    proof = new_proof(services)
    assert (await redeem(services, CREDENTIALS, code, proof=proof))["token_type"] == "DPoP"
    second = await new_code(services, profile="oidc")
    with pytest.raises(InvalidDpopProof, match="the proof was used before"):
        await redeem(services, CREDENTIALS, second, proof=proof)
    assert (await redeem(services, CREDENTIALS, second, proof=new_proof(services)))["token_type"] == "DPoP"


async def test_proof_of_a_request_that_is_refused_stays_usable(services: Services) -> None:
    proof = new_proof(services)
    code = await new_code(services, profile="oidc")
    with pytest.raises(InvalidClient):
        await redeem(services, WRONG_CREDENTIALS, code, proof=proof)
    assert (await redeem(services, CREDENTIALS, code, proof=proof))["token_type"] == "DPoP"


async def test_wrong_keys_block_the_code(services: Services) -> None:
    code = await new_code(services, query_fields={"dpop_jkt": "a" * 43}, profile="oidc")
    for _ in range(MAX_CODE_FAILURES):
        with pytest.raises(InvalidGrant):
            await redeem(services, CREDENTIALS, code, proof=new_proof(services, "b" * 43))
    with pytest.raises(InvalidGrant):
        await redeem(services, CREDENTIALS, code, proof=new_proof(services))


async def test_resources_are_some_of_those_of_the_authorization_request(services: Services) -> None:
    await apply_client(services, client_id="api", profile="oidc", resource_server=True, application_id=1)
    await apply_client(services, client_id="files", profile="oidc", resource_server=True, application_id=1)
    code = await new_code(services, query_fields={"resource": "api"}, profile="oidc")
    with pytest.raises(InvalidTarget, match="expected some of those of the authorization request"):
        await redeem(services, CREDENTIALS, code, resources=("api", "files"))
    assert await redeem(services, CREDENTIALS, code, resources=("api",))


async def test_user_who_was_banned_gets_no_tokens(services: Services) -> None:
    code = await new_code(services, profile="oidc")
    await ban_everybody(services)
    with pytest.raises(InvalidGrant, match="banned"):
        await redeem(services, CREDENTIALS, code)
