"""The endpoints of AuthZEN: the answers of ``check`` in the standard form."""

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from sso.perm.accepted_credentials import EndpointRule, Subject
from sso.perm.authzen.endpoint import AuthzenEndpoint
from sso.perm.authzen.evaluations import read_evaluations
from sso.perm.authzen.search import read_subject_search
from sso.perm.caller import Caller, _is_administrative
from sso.perm.input.questions import Question
from sso.perm.operations.checks import CheckAnswer
from tests.kit.oauth import TOKEN, new_site
from tests.kit.server import Server
from tests.kit.timeline import Timeline
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio


class Shop:
    """An application of a project, whose role ``seller`` Ann has. Services ask with its credentials."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.ann, self.bob = studio.users(2)
        self.project = studio.project()
        self.app = studio.application(self.project)
        rules = {"sell": {"value": True}, "price": {"set": {"value": True, "params": "gold,silver"}}}
        role = {"name": "seller", "meta": {"private_data": rules, "public_data": {"badge": {"value": True}}}}
        assert studio.root.call("roles", action="save", application_id=self.app, data=role).status == 200
        studio.save_data(self.ann, self.app, roles=["seller"])
        studio.join(self.project, self.ann, project=["viewer"])
        saved = studio.root.call("accessKey", action="save", application_id=self.app, data={})
        self.access_key = {"Authorization": f"Bearer {saved.data['hash']}"}
        attributes: dict[str, Any] = {"profile": "oidc", "grant_types": ["client_credentials"], "redirect_hosts": []}
        service = new_site(studio.server, application_id=self.app, **attributes)
        granted = service.http.post(TOKEN, data={"grant_type": "client_credentials"}, headers=service.basic())
        self.service = {"Authorization": f"Bearer {granted.json()['access_token']}"}

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> httpx.Response:
        return self.studio.client.post(f"/access/v1/{path}", json=body, headers=headers or self.access_key)

    def decide(self, headers: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
        response = self.post("evaluation", self.request(**changes), headers)
        assert response.status_code == 200, response.text
        decision: dict[str, Any] = response.json()
        return decision

    def request(self, rule: str = "sell", user: str = "", **changes: Any) -> dict[str, Any]:
        return {
            "subject": {"type": "user", "id": user or self.ann.user_id},
            "action": {"name": rule},
            "resource": {"type": "application", "id": str(self.app)},
        } | changes


@pytest.fixture(scope="module")
def shop(studio: Studio) -> Shop:
    return Shop(studio)


def signed_in(user: ApiUser) -> dict[str, str]:
    return {"Authorization": f"Bearer {user.jwt}", "Factor": FACTOR}


def test_access_key_service_and_user_ask(shop: Shop) -> None:
    for headers in (shop.access_key, shop.service, signed_in(shop.ann)):
        assert shop.decide(headers) == {"decision": True}
        assert shop.decide(headers, rule="steal") == {"decision": False}
    assert shop.decide(rule="sell", user=shop.bob.user_id) == {"decision": False}
    response = shop.post("evaluation", shop.request(), {**shop.access_key, "X-Request-ID": "game-7"})
    assert response.headers.get_list("X-Request-Id") == ["game-7"]
    refused = shop.post("evaluation", {}, {**shop.access_key, "X-Request-ID": "game-8"})
    assert (refused.status_code, refused.headers["X-Request-Id"]) == (400, "game-8")
    assert shop.post("evaluation", shop.request()).headers["X-Request-Id"]


def test_callers_without_credentials_and_of_another_application(shop: Shop) -> None:
    body = shop.request()
    without_factor = {"Authorization": f"Bearer {shop.ann.jwt}"}
    for headers in ({"X": "y"}, {"Authorization": "Bearer unknown"}, without_factor):
        assert shop.post("evaluation", body, headers).status_code == 401
    elsewhere = {"resource": {"type": "application", "id": str(shop.studio.application())}}
    for headers in (shop.access_key, shop.service):
        refused = shop.decide(headers, **elsewhere)
        assert (refused["decision"], refused["context"]["error"]["status"]) == (False, 403)
    refused = shop.decide(signed_in(shop.bob))  # who may not read what others have in private
    error = {"status": 403, "message": "canRead of private is required"}
    assert refused == {"decision": False, "context": {"error": error}}


def test_subjects_are_named_by_id_or_login(shop: Shop) -> None:
    assert shop.decide(user=shop.ann.login)["decision"] is True
    assert shop.decide(signed_in(shop.ann), user=shop.ann.login)["decision"] is True
    unknown = {"decision": False, "context": {"error": {"status": 404, "message": "user not found"}}}
    assert shop.decide(user="nobody@example.com") == unknown
    badge: dict[str, Any] = {"rule": "badge", "headers": signed_in(shop.bob)}
    assert shop.decide(**badge, user=shop.ann.user_id)["decision"] is True
    # A player who knows the id of another one does not learn the login from it, nor whether a login exists.
    assert shop.decide(**badge, user=shop.ann.login) == unknown
    assert shop.decide(**badge, user="nobody@example.com") == unknown


async def test_user_who_names_many_logins_makes_one_lookup() -> None:
    own, looked_up = SimpleNamespace(user_id="1001", login_key="ann@example.com"), []

    class Checks:
        async def answer(self, _caller: Caller, questions: list[Question], *_: object, **__: object) -> Any:
            return [CheckAnswer(question.user_id == own.user_id) for question in questions]

    async def find_user(name: str) -> Any:
        looked_up.append(name)
        return own if name == own.user_id else None

    logins = [*(f"player{number}@example.com" for number in range(99)), "Ann@Example.com"]
    items = [{"subject": {"type": "user", "id": login}} for login in logins]
    shared = {"action": {"name": "sell"}, "resource": {"type": "application", "id": "10"}}
    nothing = cast(Any, None)
    endpoint = AuthzenEndpoint(cast(Any, Checks()), nothing, nothing, find_user)
    answer = await endpoint.evaluate(Caller(own.user_id, None), read_evaluations({**shared, "evaluations": items}))
    assert looked_up == [own.user_id]
    unknown = {"decision": False, "context": {"error": {"status": 404, "message": "user not found"}}}
    assert answer["evaluations"] == [*[unknown] * 99, {"decision": True}]


def test_parameters_projects_and_unknown_types(shop: Shop) -> None:
    price: dict[str, Any] = {"action": {"name": "price.set", "properties": {"param": "gold"}}}
    assert shop.decide(**price)["decision"] is True
    price["action"]["properties"] = {"param": "tin"}
    assert shop.decide(**price)["decision"] is False
    resource: dict[str, Any] = {"type": "application", "id": str(shop.app), "properties": {"project_id": shop.project}}
    assert shop.decide(resource=resource)["decision"] is True
    resource["properties"] = {"project_id": "another"}
    assert shop.decide(resource=resource)["decision"] is False
    project = {"type": "project", "id": shop.project}
    view: dict[str, Any] = {"rule": "project.can_view_project", "resource": project}
    assert shop.decide(signed_in(shop.ann), **view)["decision"] is True
    assert shop.decide(signed_in(shop.bob), **view, user=shop.bob.user_id)["decision"] is False
    for changes in (
        {"subject": {"type": "robot", "id": shop.ann.user_id}},
        {"resource": {"type": "document", "id": "1"}},
        {"resource": {"type": "application", "id": "x"}},
    ):
        refused = shop.decide(**changes)
        assert (refused["decision"], refused["context"]["error"]["status"]) == (False, 404)


def test_reason_and_past(shop: Shop, server: Server) -> None:
    timeline = Timeline(server)
    carl = shop.studio.user()
    before = timeline.mark()
    shop.studio.save_data(carl, shop.app, roles=["seller"])
    asked: dict[str, Any] = {"user": carl.user_id, "context": {"reason": True}}
    body = {"action": "get", "application_id": shop.app, "data": {}, "options": {"explain": "sell"}}
    assert shop.decide(**asked) == {
        "decision": True,
        "context": {"reason": carl.call("meta/data", **body).body["explain"]},
    }
    after = timeline.mark()
    for moment, decision in ((before, False), (after, True)):
        assert shop.decide(user=carl.user_id, context={"at": timeline.at(moment)}) == {"decision": decision}
    future = shop.post("evaluation", shop.request(context={"at": 4_000_000_000}))
    assert future.status_code == 400
    assert future.json()["error"].startswith("context.at: must not be in the future")


def test_evaluations_and_their_semantics(shop: Shop) -> None:
    rules = [{"action": {"name": name}} for name in ("sell", "steal", "badge")]
    shared = {**shop.request(), "evaluations": [*rules, {"subject": {"type": "user", "id": shop.bob.user_id}}]}

    def decisions(semantic: str | None) -> list[bool]:
        options = {"evaluations_semantic": semantic} if semantic else {}
        response = shop.post("evaluations", {**shared, "options": options})
        return [item["decision"] for item in response.json()["evaluations"]]

    assert decisions(None) == decisions("execute_all") == [True, False, True, False]
    assert decisions("deny_on_first_deny") == [True, False]
    assert decisions("permit_on_first_permit") == [True]
    shared["evaluations"] = [{"resource": {"type": "x", "id": "1"}}, *rules]
    assert decisions("permit_on_first_permit") == [False, True]
    assert decisions("deny_on_first_deny") == [False]
    for body in (shop.request(), shop.request(evaluations=[])):
        assert shop.post("evaluations", body).json() == {"decision": True}


def test_actions_of_a_subject_page_by_page(shop: Shop) -> None:
    body = shop.request()
    del body["action"]
    found = shop.post("search/action", body).json()
    price = {"name": "price.set", "properties": {"params": ["gold", "silver"]}}
    assert found == {"page": {"next_token": "", "count": 3}, "results": [{"name": "badge"}, price, {"name": "sell"}]}
    names, token = [], ""
    while True:
        page = shop.post("search/action", {**body, "page": {"limit": 2, "token": token}}).json()
        names += [item["name"] for item in page["results"]]
        token = page["page"]["next_token"]
        if not token:
            break
    assert names == ["badge", "price.set", "sell"]
    nobody = shop.post("search/action", {**body, "subject": {"type": "user", "id": "999999999"}})
    assert (nobody.status_code, nobody.json()["results"]) == (200, [])
    project = {**body, "resource": {"type": "project", "id": shop.project}}
    own = shop.post("search/action", project, signed_in(shop.ann)).json()
    assert {"name": "project.can_view_project"} in own["results"]
    assert shop.post("search/action", body, signed_in(shop.bob)).json()["results"] == [{"name": "badge"}]


def search(
    shop: Shop,
    kind: str,
    headers: dict[str, str] | None = None,
    limit: int = 2,
    *,
    between: Callable[[], None] | None = None,
    **changes: Any,
) -> list[str]:
    """Follows the pages of a search and returns the ids, of which none comes twice. ``between`` runs after a page."""
    ids: list[str] = []
    token = ""
    while True:
        if between is not None and token:
            between()
        body = {**shop.request(**changes), "page": {"limit": limit, "token": token}}
        response = shop.post(f"search/{kind}", body, headers)
        assert response.status_code == 200, response.text
        page = response.json()
        assert page["page"]["count"] == len(page["results"]) <= limit
        ids += [item["name" if kind == "action" else "id"] for item in page["results"]]
        token = page["page"]["next_token"]
        if not token:
            assert len(ids) == len(set(ids))
            return ids


def test_subjects_are_those_of_whom_an_evaluation_is_true(shop: Shop) -> None:
    more = shop.studio.users(3)
    for user in more:
        shop.studio.save_data(user, shop.app, roles=["seller"])
    sellers = sorted(user.user_id for user in (shop.ann, *more))
    for headers in (shop.access_key, shop.service):
        for limit in (1, 100):
            found = search(shop, "subject", headers, limit, subject={"type": "user"})
            assert [user_id for user_id in found if user_id in sellers] == sellers
        assert shop.bob.user_id not in found
        assert all(shop.decide(headers, user=user_id)["decision"] for user_id in found)
    price: dict[str, Any] = {"action": {"name": "price.set", "properties": {"param": "tin"}}}
    assert search(shop, "subject", **price) == []
    price["action"]["properties"] = {"param": "gold"}
    assert shop.ann.user_id in search(shop, "subject", **price)
    assert search(shop, "subject", subject={"type": "robot"}) == []
    assert search(shop, "subject", rule="steal") == []
    elsewhere = shop.request(resource={"type": "application", "id": str(shop.studio.application())})
    assert shop.post("search/subject", elsewhere).status_code == 403
    assert shop.ann.user_id in search(shop, "subject", signed_in(shop.bob), rule="badge")  # what everybody may read
    project: dict[str, Any] = {"rule": "project.can_view_project", "resource": {"type": "project", "id": shop.project}}
    root = signed_in(shop.studio.root)
    assert {shop.ann.user_id, shop.studio.keeper.user_id} == set(search(shop, "subject", root, **project))


@pytest.mark.parametrize("user_id", ["1", "1001"])
def test_search_for_subjects_is_about_other_users(user_id: str) -> None:
    """It is an administrative request, whatever the id of the caller."""
    body = {"subject": {"type": "user"}, "action": {"name": "sell"}, "resource": {"type": "application", "id": "10"}}
    fields = read_subject_search(body).request.check_fields()
    rule = EndpointRule(Subject.USER_DATA, asks_questions=True, user_optional=True)
    assert _is_administrative(rule, fields, user_id)


def test_searches_have_no_gaps_and_no_repeats_while_rows_change(shop: Shop) -> None:
    """What has the rule all the time is found once, whatever a writer does between the pages with all the others."""
    studio, random = shop.studio, Random(7)
    app, view = studio.application(studio.project()), {"type": "application"}
    applications = [app, *(studio.application() for _ in range(4))]
    users = studio.users(6)
    ann, rules = users[0], [f"rule{number}" for number in range(8)]
    for each in applications:
        studio.role(each, "holder", *rules)
        studio.save_data(ann, each, roles=["holder"])
    for user in users:
        studio.save_data(user, app, roles=["holder"])
    steady_users, steady_apps, steady_rules = users[::2], applications[::2], rules[::2]

    def write() -> None:
        for user in random.sample(users[1::2], 2):
            studio.save_data(user, app, roles=random.choice(([], ["holder"])))
        for each in random.sample(applications[1::2], 2):
            studio.save_data(ann, each, roles=random.choice(([], ["holder"])))
        shown = random.sample(rules[1::2], 2)
        studio.role(app, "holder", *steady_rules, *shown)

    root, resource = signed_in(studio.root), {"type": "application", "id": str(app)}
    question: dict[str, Any] = {"rule": "rule0", "user": ann.user_id, "between": write}
    found = search(shop, "subject", root, resource=resource, **question)
    assert {user.user_id for user in steady_users} <= set(found) <= {user.user_id for user in users}
    found = search(shop, "resource", signed_in(ann), resource=view, **question)
    assert set(map(str, steady_apps)) <= set(found)
    found = search(shop, "action", root, resource=resource, **question)
    assert set(steady_rules) <= set(found)


def test_resources_are_those_of_which_an_evaluation_is_true(shop: Shop) -> None:
    application = {"type": "application"}
    for headers in (shop.access_key, shop.service):
        assert search(shop, "resource", headers, resource=application) == [str(shop.app)]
        assert search(shop, "resource", headers, resource=application, user=shop.bob.user_id) == []
    other = shop.studio.application()
    shop.studio.role(other, "seller", "sell")
    shop.studio.save_data(shop.ann, other, roles=["seller"])
    own = search(shop, "resource", signed_in(shop.ann), 1, resource=application)
    assert [int(application_id) for application_id in own] == sorted((shop.app, other))
    view: dict[str, Any] = {"rule": "project.can_view_project", "resource": {"type": "project"}}
    assert search(shop, "resource", signed_in(shop.ann), **view) == [shop.project]
    assert search(shop, "resource", resource={"type": "document"}) == []
    assert search(shop, "resource", resource=application, user="nobody@example.com") == []


@pytest.mark.parametrize(
    ("kind", "changes", "error"),
    [
        ("subject", {"subject": {}}, "subject.type: must be a string"),
        ("subject", {"action": {}}, "action.name: must be a string"),
        ("subject", {"page": {"limit": 0}}, "page.limit: must be an integer"),
        ("subject", {"page": {"token": "eA=="}}, "page.token: must be the next_token"),
        ("resource", {"resource": {"id": "1"}}, "resource.type: must be a string"),
        ("resource", {"page": {"token": "eA=="}}, "page.token: must be the next_token"),
        (
            "resource",
            {"resource": {"type": "project"}, "page": {"token": "YQBi"}},  # "a\0b"
            "page.token: must be the next_token",
        ),
        ("resource", {"subject": {"type": "user"}}, "subject.id: must be a string"),
    ],
)
def test_malformed_searches_are_refused(shop: Shop, kind: str, changes: dict[str, Any], error: str) -> None:
    refused = shop.post(f"search/{kind}", shop.request(**changes))
    assert refused.status_code == 400
    assert refused.json()["error"].startswith(error), refused.text


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"subject": None}, "subject: must be an object"),
        ({"subject": {"type": "user"}}, "subject.id: must be a string"),
        ({"subject": {"type": "user", "id": ""}}, "subject.id: must not be empty"),
        ({"action": {"name": 1}}, "action.name: must be a string"),
        ({"resource": {"id": "1"}}, "resource.type: must be a string"),
        ({"resource": {"type": "application", "id": "1", "properties": 1}}, "resource.properties: must be an object"),
        ({"context": []}, "context: must be an object"),
        ({"context": {"reason": 1}}, "context.reason: must be true or false"),
        ({"context": {"at": "now"}}, "context.at: must be"),
    ],
)
def test_malformed_fields_are_named(shop: Shop, changes: dict[str, Any], error: str) -> None:
    refused = shop.post("evaluation", shop.request(**changes))
    assert refused.status_code == 400
    assert refused.json()["error"].startswith(error), refused.text
    refused = shop.post("evaluations", {**shop.request(), "evaluations": [{}, changes]})
    assert refused.json()["error"].startswith(f"evaluations[1].{error}"), refused.text


def test_missing_and_too_many_fields(shop: Shop) -> None:
    body = shop.request()
    del body["resource"]
    assert shop.post("evaluation", body).json()["error"] == "resource: is required"
    many = {**shop.request(), "evaluations": [{}] * 101}
    assert shop.post("evaluations", many).json()["error"] == "evaluations: must have at most 100 items"
    reasons = {**shop.request(context={"reason": True}), "evaluations": [{}] * 21}
    assert "at most 20 items with context.reason" in shop.post("evaluations", reasons).json()["error"]
    wrong = {**shop.request(), "evaluations": [{}], "options": {"evaluations_semantic": "any"}}
    assert shop.post("evaluations", wrong).json()["error"].startswith("options.evaluations_semantic: must be one of")
    page = {**shop.request(), "page": {"limit": 0}}
    assert shop.post("search/action", page).json()["error"] == "page.limit: must be an integer from 1 to 1000"
    page = {**shop.request(), "page": {"token": "%"}}
    assert shop.post("search/action", page).json()["error"].startswith("page.token: must be")


def test_metadata_names_the_endpoints(shop: Shop) -> None:
    metadata = shop.studio.client.get("/.well-known/authzen-configuration").json()
    base_url = metadata["policy_decision_point"]
    assert metadata == {
        "policy_decision_point": base_url,
        "access_evaluation_endpoint": f"{base_url}/access/v1/evaluation",
        "access_evaluations_endpoint": f"{base_url}/access/v1/evaluations",
        "search_subject_endpoint": f"{base_url}/access/v1/search/subject",
        "search_resource_endpoint": f"{base_url}/access/v1/search/resource",
        "search_action_endpoint": f"{base_url}/access/v1/search/action",
    }
