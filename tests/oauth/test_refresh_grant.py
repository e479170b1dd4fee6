"""The refresh token grant without a server: what is refused with which error, what is revoked, and what is logged."""

from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from sso.core.encryption import Keyring, MasterKey
from sso.core.errors import ApiError
from sso.db.statement import Statement
from sso.oauth.clients.authentication import ClientCredentials, sha1_bearer
from sso.oauth.errors import (
    InvalidClient,
    InvalidDpopProof,
    InvalidGrant,
    InvalidRequest,
    InvalidTarget,
    UnauthorizedClient,
)
from sso.oauth.model import Client
from sso.oauth.tokens.store import RotationResult
from sso.services import Services
from tests.kit.oauth import pkce
from tests.kit.operator_changes import disable_client
from tests.oauth.in_process import (
    BEARER_ONLY,
    CREDENTIALS,
    SECRET,
    URI,
    WRONG_CREDENTIALS,
    apply_client,
    ban_everybody,
    new_code,
    new_proof,
    redeem,
    refresh,
)

BASIC = ClientCredentials("shop", secrets=(SECRET,))
OTHER_URI = f"{URI}/elsewhere"
DELETE_CLIENTS = Statement("DELETE FROM oauth_clients WHERE client_id = 'shop'")
DELETE_GRANTS = Statement("DELETE FROM oauth_grants")
DISABLE_USERS = Statement("UPDATE users SET disabled = true")
REGISTERED = Statement("UPDATE oauth_clients SET registered_by = 'open' WHERE client_id = 'shop'")


async def new_refresh_token(services: Services, profile: str = "oidc", **fields: Any) -> str:
    code = await new_code(services, profile=profile, **fields)
    tokens = await redeem(services, CREDENTIALS, code)
    token: str = tokens["refresh_token"]
    return token


async def refused(services: Services, token: str, credentials: ClientCredentials = BASIC, **fields: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await refresh(services, credentials, token, **fields)
    return caught.value


def invalid(profile: str) -> type[ApiError]:
    return InvalidGrant if profile == "oidc" else InvalidRequest


@pytest.mark.parametrize("profile", ["oidc", "strict"])
async def test_token_is_replaced_and_the_replaced_one_is_invalid(services: Services, profile: str) -> None:
    token = await new_refresh_token(services, profile)
    with capture_logs() as logs:
        tokens = await refresh(services, CREDENTIALS, token)
        assert tokens["refresh_token"] != token
        assert isinstance(await refused(services, token, CREDENTIALS), invalid(profile))
    replayed = [entry for entry in logs if entry["event"] == "oauth.refresh_replayed"]
    assert [(entry["client"], len(entry["grant"])) for entry in replayed] == [("shop", 8)]
    if profile == "oidc":  # the grant is revoked, and a token of it is no longer a replay of anything
        with capture_logs() as logs:
            assert isinstance(await refused(services, tokens["refresh_token"], CREDENTIALS), InvalidGrant)
        assert [entry for entry in logs if entry["event"] == "oauth.refresh_replayed"] == []
    else:
        assert await refresh(services, CREDENTIALS, tokens["refresh_token"])


async def test_repeated_request_gets_the_same_tokens(services: Services) -> None:
    token = await new_refresh_token(services)
    first = await refresh(services, BASIC, token, key="key")
    assert (await refresh(services, BASIC, token, key="key"))["refresh_token"] == first["refresh_token"]
    assert isinstance(await refused(services, token, key="another"), InvalidGrant)


async def test_repeated_request_gets_the_same_tokens_while_the_master_key_is_changed(
    services: Services, keyring: Keyring
) -> None:
    """The nodes have the same keys, but not the same first key yet."""
    token = await new_refresh_token(services)
    keyring.keys = (*keyring.keys, MasterKey.generate())
    first = await refresh(services, BASIC, token, key="key")
    keyring.keys = keyring.keys[::-1]
    again = await refresh(services, BASIC, token, key="key")
    assert again["access_token"] == first["access_token"]
    assert again["refresh_token"] == first["refresh_token"]
    assert isinstance(await refused(services, token, WRONG_CREDENTIALS, key="key"), InvalidClient)
    assert isinstance(await refused(services, token, key="another"), InvalidGrant)
    assert isinstance(await refused(services, token, key="key"), InvalidGrant)  # the grant is revoked


@pytest.mark.parametrize("profile", ["oidc", "strict"])
async def test_error_of_a_token_that_cannot_be_read(services: Services, profile: str) -> None:
    await apply_client(services, profile=profile)
    with pytest.raises(InvalidRequest, match="refresh_token is required"):
        await refresh(services, CREDENTIALS, "")
    await assert_token_is_not_valid(services, "x", CREDENTIALS, profile)
    token = await new_refresh_token(services)
    await apply_client(services, client_id="other", profile=profile)
    await assert_token_is_not_valid(services, token, ClientCredentials("other", bearer=CREDENTIALS.bearer), profile)


async def assert_token_is_not_valid(
    services: Services, token: str, credentials: ClientCredentials, profile: str
) -> None:
    error = await refused(services, token, credentials)
    assert isinstance(error, invalid(profile))
    assert error.message == "the refresh token is not valid"
    wrong = ClientCredentials(credentials.client_id, secrets=("another secret",))
    assert isinstance(await refused(services, token, wrong), InvalidClient)
    assert isinstance(await refused(services, token, ClientCredentials("nobody", secrets=(SECRET,))), InvalidClient)


async def test_request_without_a_client_gets_the_error_of_the_strict_profile(services: Services) -> None:
    await apply_client(services, profile="oidc")
    assert isinstance(await refused(services, "x", ClientCredentials()), InvalidRequest)


async def test_token_names_its_client(services: Services) -> None:
    token = await new_refresh_token(services)
    assert await refresh(services, BEARER_ONLY, token)


async def test_client_that_was_removed_or_disabled_is_refused(services: Services) -> None:
    token = await new_refresh_token(services)
    await disable_client(services, "shop")
    assert isinstance(await refused(services, token), InvalidRequest | InvalidClient)


@pytest.mark.parametrize("is_cached", [True, False])
async def test_client_that_was_deleted_is_refused(services: Services, keyring: Keyring, is_cached: bool) -> None:
    """Also with an idempotency key while the master key is changed."""
    keyring.keys = (*keyring.keys, MasterKey.generate())
    token = await new_refresh_token(services)
    clients = services.oauth.token_endpoint._refresh_token._clients
    client = await clients.read("shop")
    assert client
    clients.put(client)
    await services.database.value(DELETE_CLIENTS)
    if not is_cached:
        clients._clients.clear()
    error = await refused(services, token, BEARER_ONLY, key="key")
    assert (type(error), error.message) == (InvalidRequest, "the refresh token is not valid")


async def test_token_of_a_disabled_user_or_an_ended_grant_is_no_replay(services: Services) -> None:
    token = await new_refresh_token(services)
    await services.database.value(DISABLE_USERS)
    with capture_logs() as logs:
        assert isinstance(await refused(services, token), InvalidGrant)
        assert isinstance(await refused(services, token, CREDENTIALS, uri=""), InvalidGrant)
        await services.database.value(DELETE_GRANTS)
        assert isinstance(await refused(services, token), InvalidGrant)
        assert isinstance(await refused(services, token, CREDENTIALS, uri=""), InvalidClient)
    assert [entry for entry in logs if entry["event"] == "oauth.refresh_replayed"] == []


async def test_request_that_lost_a_race_is_tried_again_with_the_same_proof(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, proof = await new_refresh_token(services), new_proof(services)
    store = services.oauth.token_endpoint._refresh_token._token_store
    rotate, results = store.rotate, list[RotationResult | None]()

    async def lose_the_first(client: Client, grant_id: str, token_id: str, uri: str, secret: Any, *rest: Any) -> Any:
        result = await rotate(client, grant_id, token_id, uri, secret if results else None, *rest)
        results.append(result)
        return replace(result, authenticated=True, lost_race=True) if result and len(results) == 1 else result

    monkeypatch.setattr(store, "rotate", lose_the_first)
    assert await refresh(services, BASIC, token, proof=proof)
    assert len(results) == 2


@pytest.mark.parametrize(("profile", "uri", "is_refused"), [("oidc", "", False), ("strict", "", True)])
async def test_redirect_uri_is_optional_in_the_standard(
    services: Services, profile: str, uri: str, is_refused: bool
) -> None:
    token = await new_refresh_token(services, profile)
    if is_refused:
        with pytest.raises(InvalidRequest, match="redirect_uri is required"):
            await refresh(services, CREDENTIALS, token, uri=uri)
    else:  # the bearer is a hash with the redirect URI of the grant
        assert await refresh(services, CREDENTIALS, token, uri=uri)


async def test_another_redirect_uri_is_refused(services: Services) -> None:
    token = await new_refresh_token(services)
    other = ClientCredentials("shop", bearer=sha1_bearer(OTHER_URI, SECRET).decode())
    for credentials in (BASIC, other, CREDENTIALS):
        with pytest.raises(InvalidGrant, match="redirect_uri differs"):
            await refresh(services, credentials, token, uri=OTHER_URI)
    assert await refresh(services, BASIC, token)


async def test_failed_authentication_is_logged_and_leaves_the_token(services: Services) -> None:
    token = await new_refresh_token(services)
    with capture_logs() as logs:
        assert isinstance(await refused(services, token, WRONG_CREDENTIALS), InvalidClient)
    failed = [entry for entry in logs if entry["event"] == "oauth.refresh_not_authenticated"]
    assert [(entry["client"], len(entry["grant"])) for entry in failed] == [("shop", 8)]
    assert await refresh(services, BASIC, token)


async def test_new_secret_counts_although_the_old_one_is_cached(services: Services) -> None:
    token = (await refresh(services, BASIC, await new_refresh_token(services)))["refresh_token"]
    await apply_client(services, profile="oidc", client_secret="a-new-secret-of-the-shop")
    assert isinstance(await refused(services, token), InvalidClient)
    new = ClientCredentials("shop", secrets=("a-new-secret-of-the-shop",))
    assert await refresh(services, new, token)
    clients = services.oauth.token_endpoint._refresh_token._clients
    assert clients.cached("shop") == await clients.read("shop")


async def test_client_without_the_grant_is_refused(services: Services) -> None:
    token = await new_refresh_token(services)
    await apply_client(services, profile="oidc", grant_types=["authorization_code"])
    assert isinstance(await refused(services, token), UnauthorizedClient)


async def test_banned_user_is_refused_with_the_reason(services: Services) -> None:
    token = await new_refresh_token(services)
    await ban_everybody(services)
    with pytest.raises(InvalidGrant, match="banned"):
        await refresh(services, BASIC, token)


async def test_resources_are_some_of_those_of_the_grant(services: Services) -> None:
    for name in ("api", "files"):
        await apply_client(services, client_id=name, profile="oidc", resource_server=True, application_id=1)
    token = await new_refresh_token(services, query_fields={"resource": "api"})
    with pytest.raises(InvalidTarget, match="expected some of those of the authorization request"):
        await refresh(services, BASIC, token, resources=("files",))
    assert await refresh(services, BASIC, token, resources=("api",))


async def test_client_that_registered_itself_names_no_resource_that_the_user_has_not_seen(services: Services) -> None:
    await apply_client(services, client_id="api", profile="oidc", resource_server=True, application_id=1)
    code, token = await new_code(services, profile="oidc"), await new_refresh_token(services)
    await services.database.value(REGISTERED)
    with pytest.raises(InvalidTarget, match="expected some of those of the authorization request"):
        await redeem(services, CREDENTIALS, code, resources=("api",))
    assert isinstance(await refused(services, token, resources=("api",)), InvalidTarget)
    assert await redeem(services, CREDENTIALS, code)
    assert await refresh(services, BASIC, token)


async def test_token_of_a_public_client_is_bound_by_the_first_refresh_with_a_proof(services: Services) -> None:
    verifier, challenge = pkce()
    code = await new_code(services, challenge, profile="oidc", public=True, client_secret=None)
    public = ClientCredentials("shop")
    first = (await redeem(services, public, code, verifier=verifier))["refresh_token"]
    second = (await refresh(services, public, first, proof=new_proof(services)))["refresh_token"]
    assert isinstance(await refused(services, second, public), InvalidDpopProof)
    assert isinstance(await refused(services, second, public, proof=new_proof(services, "b" * 43)), InvalidGrant)
    assert await refresh(services, public, second, proof=new_proof(services))


async def test_thief_who_binds_a_token_loses_it_when_the_owner_uses_the_older_one(services: Services) -> None:
    verifier, challenge = pkce()
    code = await new_code(services, challenge, profile="oidc", public=True, client_secret=None)
    public = ClientCredentials("shop")
    stolen = (await redeem(services, public, code, verifier=verifier))["refresh_token"]
    of_thief = (await refresh(services, public, stolen, proof=new_proof(services)))["refresh_token"]
    assert isinstance(await refused(services, stolen, public), InvalidGrant)
    assert isinstance(await refused(services, of_thief, public, proof=new_proof(services)), InvalidGrant)


async def test_bound_token_needs_a_proof_of_its_key_that_is_new(services: Services) -> None:
    verifier, challenge = pkce()
    code = await new_code(services, challenge, profile="oidc", public=True, client_secret=None)
    public = ClientCredentials("shop")
    first = new_proof(services)
    token = (await redeem(services, public, code, proof=first, verifier=verifier))["refresh_token"]
    assert isinstance(await refused(services, token, public), InvalidDpopProof)
    error = await refused(services, token, public, proof=new_proof(services, "b" * 43))
    assert (type(error), error.message) == (
        InvalidGrant,
        "the refresh token is bound to another key than that of the DPoP proof",
    )
    with pytest.raises(InvalidDpopProof, match="the proof was used before"):
        await refresh(services, public, token, proof=first)
    second = new_proof(services)
    assert isinstance(await refused(services, token, BASIC, proof=second), InvalidClient)  # which leaves the proof
    tokens = await refresh(services, public, token, proof=second)
    assert tokens["token_type"] == "DPoP"
    with pytest.raises(InvalidDpopProof, match="the proof was used before"):
        await refresh(services, public, tokens["refresh_token"], proof=second)


async def test_proof_is_used_up_also_if_the_redirect_uri_is_known_only_later(services: Services) -> None:
    token, proof = await new_refresh_token(services), new_proof(services)
    tokens = await refresh(services, CREDENTIALS, token, uri="", proof=proof)
    with pytest.raises(InvalidDpopProof, match="the proof was used before"):
        await refresh(services, CREDENTIALS, tokens["refresh_token"], uri="", proof=proof)


async def test_service_that_requires_a_second_factor_of_all_refuses_a_sign_in_without(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await new_refresh_token(services)
    monkeypatch.setattr(services.oauth.token_endpoint._refresh_token, "_second_factor_of_all", True)
    assert isinstance(await refused(services, token), InvalidGrant)
    monkeypatch.undo()
    assert isinstance(await refused(services, token), InvalidGrant)  # it is used up
