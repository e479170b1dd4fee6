"""Two nodes whose clocks are 14 minutes apart: the database's clock decides, so every node gives the same answers."""

import time
from collections.abc import Iterator
from typing import Any

import jwt as pyjwt
import pytest

from tests.kit.browser import AuthenticatorApp, Browser, new_user
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.nodes import Node, running_nodes
from tests.kit.postgres import Postgres
from tests.kit.server import until
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey, ip_headers

SHIFTS = (420, -420)
Nodes = list[Node]


@pytest.fixture(scope="module")
def nodes(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with running_nodes(tmp_path_factory.mktemp("clocks"), postgres_server.fresh(), SHIFTS) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def studio(nodes: Nodes) -> Iterator[Studio]:
    with nodes[0].client() as client:
        yield Studio(nodes[0], client)


@pytest.fixture(scope="module", params=[0, 1], ids=["ahead", "behind"])
def node(nodes: Nodes, request: pytest.FixtureRequest) -> Node:
    chosen: Node = nodes[request.param]
    return chosen


def at(node: Node, user: ApiUser) -> ApiUser:
    """The same user with requests to this node."""
    return ApiUser(node.http, user.user_id, user.login, user.jwt)


def test_clocks_of_the_nodes_are_shifted(nodes: Nodes) -> None:
    """The other tests could not fail otherwise."""
    for node, shift in zip(nodes, SHIFTS, strict=True):
        warnings = until(lambda node=node: node.log_events("clock.host_drifted"))
        assert [round(warning["seconds"]) for warning in warnings] == [shift]


def test_jwt_has_the_time_of_the_database_and_is_valid_at_both_nodes(nodes: Nodes, node: Node) -> None:
    login = new_user(node)
    credentials = {"login": login, "password": PASSWORD, "factor": FACTOR}
    answer = node.http.post("/proxy/api/login", json=credentials).json()
    claims = pyjwt.decode(answer["jwt"], options={"verify_signature": False})
    assert abs(claims["iat"] - time.time()) < 60
    assert claims["exp"] - claims["iat"] == 3600
    for other in nodes:
        user = ApiUser(other.http, answer["user_id"], login, answer["jwt"])
        assert user.call("user/info").status == 200


def test_code_of_an_authenticator_app_is_accepted_and_works_once(nodes: Nodes, node: Node) -> None:
    login = new_user(node, totp_secret=TOTP_SECRET)
    code = AuthenticatorApp(TOTP_SECRET).code()
    credentials = {"login": login, "password": PASSWORD, "factor": FACTOR, "otp": code}
    assert node.http.post("/proxy/api/login", json=credentials).json()["status"] == "OK"
    for other in nodes:
        assert other.http.post("/proxy/api/login", json=credentials).json()["status"] == "ERROR"


def test_setup_of_an_authenticator_app_continues_at_another_node(nodes: Nodes, node: Node) -> None:
    login = new_user(node)
    with Browser(node) as browser:
        assert browser.sign_in(login).status_code == 303
        browser.get("/account/totp")
        secret = browser.page.text.partition('class="key"><code>')[2].partition("<")[0]
        other = next(other for other in nodes if other is not node)
        browser.http.base_url = other.url
        for cookie in list(browser.http.cookies.jar):
            browser.http.cookies.set(cookie.name, cookie.value or "", domain=other.url[7:].partition(":")[0])
        code = AuthenticatorApp(secret).code()
        assert browser.submit("/account/totp", otp=code, current_password=PASSWORD).status_code == 303


def test_service_jwt_is_judged_by_the_time_of_the_database(studio: Studio, node: Node) -> None:
    application_id = studio.application()
    key = ServiceKey().trusted_by(studio, application_id)
    body = {
        "action": "get",
        "application_id": application_id,
        "data": {"type": "roles", "user_id": studio.root.user_id},
    }

    def status(**claims: Any) -> int:
        token = key.sign(studio.server, application_id, **claims)
        answer = node.http.post("/api/permissions/meta/data", json=body, headers={"Service-Jwt": token})
        return answer.status_code

    now = int(time.time())
    assert status() == 200
    assert status(iat=now - 900, exp=now - 120) == 401
    assert status(iat=now + 120, exp=now + 900) == 401


def test_signed_address_is_judged_by_the_time_of_the_database(studio: Studio, node: Node) -> None:
    application_id = studio.application()
    key = studio.root.call("accessKey", action="save", application_id=application_id, data={}).data
    ann = at(node, studio.user())
    body = {"action": "get", "application_id": application_id, "data": {"type": "list_short"}}
    for seconds, expected in ((-240, 200), (240, 200), (-360, 403), (360, 403)):
        headers = ip_headers(key, "10.1.2.3", time.time() + seconds)
        assert ann.call("meta/data", headers, **body).status == expected


def test_roles_end_at_the_same_time_at_both_nodes(studio: Studio, node: Node) -> None:
    application_id = studio.application()
    for name in ("past", "future"):
        studio.role(application_id, name, f"enter_{name}")
    ann = studio.user()
    now = int(time.time())
    roles = [{"name": "past", "expired": now - 60}, {"name": "future", "expired": now + 300}]
    studio.save_data(ann, application_id, roles=roles)
    assert studio.rules_of(at(node, ann), application_id) == ["enter_future"]
