"""POST /api/admin/identity-providers/{id}/test: tests the connection to a provider."""

from dataclasses import asdict

from sso.admin.request import AdminRequest, AdminResponse, AdminRoute
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.db.rate_limit import RateLimiter
from sso.perm.errors import TooManyAdminRequests
from sso.upstream.connection_test import ConnectionTest
from sso.upstream.provider_store import ProviderStore
from sso.upstream.sign_in import callback_url

TESTS_PER_MINUTE = 10  # of one caller, because each sends several requests to another service


class ProviderTestResource:
    def __init__(self, store: ProviderStore, test: ConnectionTest, rate: RateLimiter, base_url: str) -> None:
        self._store = store
        self._test = test
        self._rate = rate
        self._base_url = base_url

    async def test(self, request: AdminRequest) -> AdminResponse:
        """Asks the provider as a sign-in would: `works`, and `steps` with what was found, or the field that is wrong.

        Nothing is changed. A caller has 10 tests per minute.
        """
        provider = await self._store.get(request.path["provider_id"])
        if provider is None:
            raise NotFound("identity provider not found")
        actor = request.caller.actor
        if wait_s := await self._rate.add_subject(f"{actor.user_id} {actor.service_id}"):
            raise TooManyAdminRequests(wait_s)
        secret = self._store.secret(provider)
        steps = await self._test.run(provider, secret, callback_url(self._base_url, provider.provider_id))
        works = all(step.works for step in steps)
        return AdminResponse({"data": {"works": works, "steps": [asdict(step) for step in steps]}})


def provider_test_routes(resource: ProviderTestResource) -> tuple[AdminRoute, ...]:
    path = "/identity-providers/<provider_id>/test"
    summary = "Test the connection to an identity provider"
    return (AdminRoute("POST", path, AdminRight.MANAGE_CLIENTS, resource.test, summary=summary),)
