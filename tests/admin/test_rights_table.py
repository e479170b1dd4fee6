"""The table of rights: every route of the management API with every right alone and every kind of caller.

Each row says which status an allowed request gets; `AdminRoute.right` says who is allowed. A request never changes
anything: it names a record that does not exist, has an invalid body, or an If-Match that is not the present version.
"""

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from sso.admin.request import AdminRoute
from sso.admin.rights import AdminRight, with_included
from sso.services import Services
from tests.admin.conftest import Administrator, administrator, service_token
from tests.kit.browser import each_worker
from tests.kit.long_tests import usual_part
from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, Studio
from tests.perm.endpoints.tokens import user_jwt

pytestmark = pytest.mark.two_workers


@dataclass(frozen=True)
class Row:
    allowed: int  # the status of an allowed request
    path: str = ""  # of a record that exists; by default, of one that does not
    body: dict[str, Any] = field(default_factory=dict)  # if the route has one


LONG = "SSO_TEST_ROUNDS" in os.environ
APPLICATION, PROJECT = "/applications/{application}", "/projects/{project}"
MEMBER, GROUP, KEY = f"{PROJECT}/members/{{member}}", "/groups/{group}", "/access-keys/{key}"
ROLE, SCHEMA, PERMISSIONS = "/roles/{application}/tester", "/schemas/{application}", "/users/{member}/permissions"

# One line for each route.
TABLE: dict[str, Row] = {
    "GET /users": Row(200),
    "POST /users": Row(400),
    "GET /users/<user_id>": Row(404),
    "PATCH /users/<user_id>": Row(404),
    "DELETE /users/<user_id>": Row(404),
    "GET /users/<user_id>/sessions": Row(404),
    "DELETE /users/<user_id>/sessions": Row(404),
    "DELETE /users/<user_id>/sessions/<session_id>": Row(404),
    "GET /users/<user_id>/games": Row(404),
    "DELETE /users/<user_id>/games/<sign_in_id>": Row(404),
    "GET /users/<user_id>/factors": Row(404),
    "DELETE /users/<user_id>/factors": Row(404),
    "GET /users/<user_id>/factors/block": Row(404),
    "DELETE /users/<user_id>/factors/block": Row(404),
    "GET /users/<user_id>/bans": Row(404),
    "POST /users/<user_id>/bans": Row(400),
    "DELETE /users/<user_id>/bans/<ban_id>": Row(404),
    "POST /users/<user_id>/impersonate": Row(400),
    "GET /data-requests": Row(200),
    "POST /data-requests/<number>/retry": Row(404),
    "POST /users/import": Row(400),
    "POST /users/<user_id>/export": Row(404),
    "POST /users/<user_id>/restore": Row(404),
    "POST /users/<user_id>/merge": Row(400),
    "POST /users/<user_id>/unmerge": Row(400),
    "GET /users/<user_id>/merges": Row(404),
    "GET /users/<user_id>/links": Row(404),
    "DELETE /users/<user_id>/links/<link_id>": Row(404),
    "GET /users/<user_id>/permissions": Row(200, f"{PERMISSIONS}?application_id={{application}}"),
    "PATCH /users/<user_id>/permissions": Row(412, PERMISSIONS, {"application_id": "{application}"}),
    "GET /users/<user_id>/can": Row(200, "/users/{member}/can?application_id={application}"),
    "GET /users/<user_id>/assignments": Row(404),
    "GET /audit": Row(200),
    "GET /audit/<entry_id>": Row(404),
    "GET /invitations": Row(200),
    "POST /invitations": Row(400),
    "DELETE /invitations/<invitation_id>": Row(404),
    "GET /brand": Row(200),
    "PATCH /brand": Row(412),
    "GET /clients": Row(200),
    "POST /clients": Row(400),
    "GET /clients/<client_id>": Row(404),
    "PATCH /clients/<client_id>": Row(404),
    "DELETE /clients/<client_id>": Row(404),
    "POST /clients/<client_id>/rotate-secret": Row(404),
    "POST /clients/<client_id>/refuse": Row(404),
    "GET /registration-tokens": Row(200),
    "POST /registration-tokens": Row(400, body={"uses": 0}),
    "DELETE /registration-tokens/<token_id>": Row(404),
    "GET /clients/<client_id>/requests": Row(404),
    "POST /clients/<client_id>/recording": Row(404),
    "DELETE /clients/<client_id>/recording": Row(404),
    "GET /clients/<client_id>/signal-streams": Row(404),
    "PATCH /clients/<client_id>/signal-streams/<stream_id>": Row(400),
    "DELETE /clients/<client_id>/signal-streams/<stream_id>": Row(404),
    "POST /clients/<client_id>/signal-streams/<stream_id>/examples": Row(400),
    "GET /identity-providers": Row(200),
    "POST /identity-providers": Row(400),
    "GET /identity-providers/<provider_id>": Row(404),
    "PATCH /identity-providers/<provider_id>": Row(404),
    "DELETE /identity-providers/<provider_id>": Row(404),
    "POST /identity-providers/<provider_id>/test": Row(404),
    "GET /signing-keys": Row(200),
    "POST /signing-keys": Row(400, body={"unknown": 1}),
    "GET /signing-keys/<kid>": Row(404),
    "DELETE /signing-keys/<kid>": Row(404),
    "GET /game-sessions": Row(200),
    "GET /game-sessions/<gsid>": Row(404),
    "DELETE /game-sessions/<gsid>": Row(404),
    "GET /violations/<violation_id>": Row(404),
    "GET /state": Row(200),
    "GET /state/export": Row(200),
    "POST /state": Row(412, "/state?dry_run=1"),
    "POST /state/diff": Row(200),
    "POST /state/apply": Row(412, "/state/apply?dry_run=1"),  # only root applies without a dry run
    "GET /changes": Row(200),
    "GET /applications/<application_id>/replica": Row(404),
    "GET /applications/<application_id>/replica/users": Row(404),
    "GET /applications/<application_id>/replica/changes": Row(400),
    "GET /figures": Row(200),
    "GET /system": Row(200),
    "GET /webhooks": Row(200),
    "POST /webhooks": Row(400),
    "GET /webhooks/<webhook_id>": Row(404),
    "PATCH /webhooks/<webhook_id>": Row(404),
    "DELETE /webhooks/<webhook_id>": Row(404),
    "GET /webhooks/<webhook_id>/failed": Row(404),
    "GET /webhooks/<webhook_id>/dead-letters": Row(404),
    "POST /webhooks/<webhook_id>/failed/retry": Row(404),
    "GET /applications": Row(200),
    "POST /applications": Row(400),
    "GET /applications/<application_id>": Row(200, APPLICATION),
    "PATCH /applications/<application_id>": Row(412, APPLICATION),
    "DELETE /applications/<application_id>": Row(412, APPLICATION),
    "GET /applications/<application_id>/holders": Row(200, f"{APPLICATION}/holders"),
    "GET /applications/<application_id>/who": Row(200, f"{APPLICATION}/who?rule=chat.kick"),
    "GET /applications/<application_id>/assertions": Row(200, f"{APPLICATION}/assertions"),
    "PUT /applications/<application_id>/assertions": Row(412, f"{APPLICATION}/assertions", {"assertions": []}),
    "GET /applications/<application_id>/keys": Row(200, f"{APPLICATION}/keys"),
    "POST /applications/<application_id>/keys": Row(400),
    "GET /applications/<application_id>/keys/<kid>": Row(404),
    "DELETE /applications/<application_id>/keys/<kid>": Row(404),
    "POST /applications/<application_id>/service-jwt": Row(404),
    "POST /applications/<application_id>/email-secret": Row(404),
    "POST /applications/<application_id>/data-secret": Row(404),
    "POST /assertions/test": Row(200),
    "GET /schemas": Row(200),
    "GET /schemas/<application_id>": Row(200, SCHEMA),
    "PATCH /schemas/<application_id>": Row(412, SCHEMA),
    "GET /roles": Row(200),
    "POST /roles": Row(409, body={"application_id": "{application}", "name": "tester"}),
    "GET /roles/<application_id>/<name>": Row(200, ROLE),
    "PATCH /roles/<application_id>/<name>": Row(412, ROLE),
    "DELETE /roles/<application_id>/<name>": Row(412, ROLE),
    "GET /access-keys": Row(200),
    "POST /access-keys": Row(400),
    "GET /access-keys/<key_id>": Row(200, KEY),
    "PATCH /access-keys/<key_id>": Row(412, KEY),
    "DELETE /access-keys/<key_id>": Row(412, KEY),
    "GET /projects": Row(200),
    "POST /projects": Row(400),
    "GET /projects/<project_id>": Row(200, PROJECT),
    "PATCH /projects/<project_id>": Row(412, PROJECT),
    "DELETE /projects/<project_id>": Row(412, PROJECT),
    "POST /projects/<project_id>/restore": Row(404),
    "POST /applications/<application_id>/restore": Row(404),
    "GET /projects/<project_id>/members": Row(200, f"{PROJECT}/members"),
    "POST /projects/<project_id>/members": Row(
        409, f"{PROJECT}/members", {"user_id": "{member}", "roles": {"project": ["viewer"]}}
    ),
    "GET /projects/<project_id>/members/<user_id>": Row(200, MEMBER),
    "PATCH /projects/<project_id>/members/<user_id>": Row(412, MEMBER, {"roles": {"project": ["viewer"]}}),
    "DELETE /projects/<project_id>/members/<user_id>": Row(412, MEMBER),
    "GET /projects/<project_id>/roles": Row(200, f"{PROJECT}/roles"),
    "POST /conditions/test": Row(200, body={"condition": {"tag": "beta"}}),
    "POST /conditions/matches": Row(200, body={"conditions": [{"tag": "beta"}]}),
    "GET /conditions/suggestions": Row(200),
    "GET /groups": Row(200),
    "POST /groups": Row(400),
    "GET /groups/<group_id>": Row(200, GROUP),
    "PATCH /groups/<group_id>": Row(412, GROUP),
    "DELETE /groups/<group_id>": Row(412, GROUP),
}


@dataclass(frozen=True)
class Service:
    """A server on which users without rights see nothing, with one record of each kind."""

    studio: Studio
    routes: dict[str, AdminRoute]
    records: dict[str, str]
    workers: list[httpx.Client]

    def call(self, client: httpx.Client, headers: dict[str, str], name: str) -> httpx.Response:
        route, row = self.routes[name], TABLE[name]
        path = row.path or re.sub("<[a-z_]+>", "x", route.path.replace("<user_id>", "999999999999"))
        options: dict[str, Any] = {"json": self._filled(row.body)} if route.body else {}
        headers = {**headers, "If-Match": '"an older version"'}
        return client.request(route.method, f"/api/admin{self._filled(path)}", headers=headers, **options)

    def statuses(self, headers: dict[str, str], names: Sequence[str] = ()) -> dict[str, set[int]]:
        """The statuses of all or some routes: on one of the workers in turn, and with SSO_TEST_ROUNDS on all."""
        workers = itertools.repeat(self.workers) if LONG else itertools.cycle([client] for client in self.workers)
        return {
            name: {self.call(client, headers, name).status_code for client in clients}
            for name, clients in zip(names or self.routes, workers, strict=False)
        }

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(item) for name, item in value.items()}
        return value.format(**self.records) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def service(server: Server, studio: Studio) -> Iterator[Service]:
    with each_worker(server) as workers:
        yield Service(studio, read_routes(server), create_records(studio), workers)


def read_routes(server: Server) -> dict[str, AdminRoute]:
    async def read(services: Services) -> dict[str, AdminRoute]:
        return {f"{route.method} {route.path}": route for route in services.management.routes}

    return server.run_with_services(read)


def create_records(studio: Studio) -> dict[str, str]:
    project = studio.project()
    application = studio.application(project)
    studio.role(application, "tester", "test")
    member = studio.user()
    studio.join(project, member, project=["viewer"])
    key = studio.root.call("accessKey", application_id=application, action="save", data={}).data["id"]
    group = studio.group(project)
    return {
        "application": str(application),
        "project": project,
        "member": member.user_id,
        "group": group,
        "key": key,
    }


def expected(service: Service, rights: frozenset[AdminRight]) -> dict[str, set[int]]:
    return {
        name: {TABLE[name].allowed if route.right in rights or route.other_right in rights else 403}
        for name, route in service.routes.items()
    }


def test_every_route_has_a_row(service: Service) -> None:
    assert set(TABLE) == set(service.routes)


@pytest.mark.parametrize("right", list(AdminRight))
def test_right_opens_its_routes(service: Service, right: AdminRight) -> None:
    """With SSO_TEST_ROUNDS, also: it opens no others."""
    statuses = expected(service, with_included({right}))
    if not LONG:
        statuses = {name: found for name, found in statuses.items() if found != {403}}
    assert statuses
    assert service.statuses(administrator(service.studio, right).headers, [*statuses]) == statuses


def test_no_other_rights_open_a_route(service: Service) -> None:
    """An administrator is refused who has all rights but those that the route needs, and those that include them."""
    needed = {name: frozenset((route.right, route.other_right)) for name, route in service.routes.items()}
    for excluded in set(needed.values()):
        others = [right for right in AdminRight if with_included({right}).isdisjoint(excluded)]
        names = [name for name, rights in needed.items() if rights == excluded]
        headers = administrator(service.studio, *others).headers
        assert service.statuses(headers, names) == {name: {403} for name in names}, others


def test_without_rights_nothing_is_shown(service: Service) -> None:
    nobody = administrator(service.studio)
    for (name, route), client in zip(service.routes.items(), itertools.cycle(service.workers), strict=False):
        response = service.call(client, nobody.headers, name)
        assert (response.status_code, response.json()["error"]) == (403, f"{route.right} is required"), name


def test_root_may_do_everything(service: Service) -> None:
    headers = Administrator.of(service.studio.root).headers
    assert service.statuses(headers) == expected(service, frozenset(AdminRight))


def test_service_client_of_the_central_application_may_do_everything(service: Service) -> None:
    headers = service_token(service.studio.server, "management", 1)
    assert service.statuses(headers) == expected(service, frozenset(AdminRight))


def test_service_client_of_another_application_only_reads_its_changes(service: Service) -> None:
    headers = service_token(service.studio.server, "elsewhere", int(service.records["application"]))
    assert service.statuses(headers) == expected(service, frozenset((AdminRight.VIEW_CHANGES,)))


def test_login_from_a_game_is_refused(service: Service) -> None:
    """Also where games may administer permissions (``SSO_GSID_ADMIN=allow``)."""
    jwt = user_jwt(service.studio.server, service.studio.root.user_id, auth="gsid")
    headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
    assert service.statuses(headers) == expected(service, frozenset())
    assert "a login from a game" in service.call(service.workers[0], headers, "GET /users").json()["error"]


def test_user_jwt_needs_its_factor(service: Service) -> None:
    headers = {"Authorization": f"Bearer {service.studio.root.jwt}"}
    assert service.statuses(headers) == {name: {401} for name in service.routes}
    assert "Factor" in service.call(service.workers[0], headers, "GET /users").json()["error"]


INVALID: tuple[dict[str, str], ...] = ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic eDp4"})


@pytest.mark.parametrize("number", range(len(INVALID)))
def test_without_a_valid_credential_every_route_is_401(service: Service, number: int) -> None:
    """In a usual run, each route with one of the invalid credentials."""
    names = usual_part(service.routes, -(-len(service.routes) // len(INVALID)), number)
    assert service.statuses(INVALID[number], names) == {name: {401} for name in names}
