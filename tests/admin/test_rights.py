"""The table of rights: every route of the management API, with every right, and with none."""

import re

import httpx
import pytest
import trio

from sso.admin.request import AdminRoute
from sso.admin.rights import AdminRight, with_included
from sso.config import load
from sso.services import open_services
from tests.admin.conftest import Administrator, administrator
from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, Studio
from tests.perm.endpoints.tokens import user_jwt


@pytest.fixture(scope="module")
def routes(server: Server) -> dict[str, AdminRoute]:
    async def read() -> dict[str, AdminRoute]:
        async with open_services(load(None, server.settings), server.settings["SSO_DATABASE_URL"]) as services:
            return {f"{route.method} {route.path}": route for route in services.management.routes}

    return trio.run(read)


@pytest.fixture(scope="module")
def holders(studio: Studio) -> dict[AdminRight, Administrator]:
    """A user for each right, who has no other."""
    return {right: administrator(studio, right) for right in AdminRight}


def path_of(route: AdminRoute) -> str:
    """The path with ids that do not exist, so that an allowed request changes nothing."""
    return re.sub("<[a-z_]+>", "x", route.path.replace("<user_id>", "999999999999"))


def call(caller: Administrator, route: AdminRoute) -> httpx.Response:
    return caller.request(route.method, path_of(route), **({"json": {}} if route.body else {}))


def test_every_right_opens_its_routes_and_no_others(
    routes: dict[str, AdminRoute], holders: dict[AdminRight, Administrator]
) -> None:
    for name, route in routes.items():
        for right, holder in holders.items():
            status = call(holder, route).status_code
            is_allowed = route.right in with_included({right})
            assert (status != 403) == is_allowed, (name, right, status)
            assert status in (200, 400, 403, 404), (name, right, status)


def test_without_rights_nothing_is_shown(routes: dict[str, AdminRoute], studio: Studio) -> None:
    nobody = administrator(studio)
    for name, route in routes.items():
        response = call(nobody, route)
        assert (response.status_code, response.json()["error"]) == (403, f"{route.right} is required"), name


def test_root_may_do_everything(routes: dict[str, AdminRoute], root: Administrator) -> None:
    for name, route in routes.items():
        assert call(root, route).status_code in (200, 400, 404), name


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer x"}, {"Authorization": "Basic eDp4"}])
def test_without_a_valid_credential_every_route_is_401(
    routes: dict[str, AdminRoute], root: Administrator, headers: dict[str, str]
) -> None:
    nobody = Administrator(root.client, headers)
    for name, route in routes.items():
        assert call(nobody, route).status_code == 401, name


def test_user_jwt_needs_its_factor(root: Administrator) -> None:
    without = Administrator(root.client, {"Authorization": root.headers["Authorization"]})
    response = without.get("/users")
    assert (response.status_code, "Factor" in response.json()["error"]) == (401, True)


def test_login_from_a_game_is_refused(studio: Studio, root: Administrator) -> None:
    """Also where games may administer permissions (``SSO_GSID_ADMIN=allow``)."""
    jwt = user_jwt(studio.server, studio.root.user_id, auth="gsid")
    response = Administrator(root.client, {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}).get("/users")
    assert (response.status_code, "a login from a game" in response.json()["error"]) == (403, True)


def test_service_client_of_the_central_application_has_every_right(service_client: Administrator) -> None:
    assert service_client.get("/users", limit=1).status_code == 200
    assert service_client.get("/audit", limit=1).status_code == 200


def test_service_client_of_another_application_has_none(server: Server, studio: Studio) -> None:
    application_id = studio.application()
    secret = "a secret of another client"
    fields = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": application_id}
    server.apply({"clients": [{"client_id": "elsewhere", "client_secret": secret, **fields}]})
    form = {"grant_type": "client_credentials", "client_id": "elsewhere", "client_secret": secret}
    token = studio.client.post("/proxy/oauth/token", data=form).json()["access_token"]
    response = Administrator(studio.client, {"Authorization": f"Bearer {token}"}).get("/users")
    assert response.status_code == 403
