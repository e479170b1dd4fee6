"""The modules of the AuthZEN plans: evaluation, evaluations and the three searches."""

from copy import deepcopy
from typing import Any

import httpx
import pytest

from tests.conformance.authzen_plans import AUTHZEN_PLANS, PATHS, REMOVED, Case
from tests.conformance.plans import Plan
from tests.conformance.result_table import PAGE, table
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio

MODULES = [(kind, name) for kind, (_, cases) in PATHS.items() for name in cases]


class Fixture:
    """Two users who sell, at an application of a project; its access key asks."""

    def __init__(self, server: Server, client: httpx.Client) -> None:
        studio = Studio(server, client)
        self.client = client
        self.project = studio.project()
        self.app = studio.application(self.project)
        rules = {"sell": {"value": True}, "price": {"set": {"value": True, "params": "gold,silver"}}}
        role = {"name": "seller", "meta": {"private_data": rules}}
        assert studio.root.call("roles", action="save", application_id=self.app, data=role).status == 200
        self.users = [studio.user(), studio.user()]
        for user in self.users:
            studio.save_data(user, self.app, roles=["seller"])
        key = studio.root.call("accessKey", action="save", application_id=self.app, data={}).data["hash"]
        self.headers = {"Authorization": f"Bearer {key}"}

    def valid(self, kind: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "subject": {"type": "user", "id": self.users[0].user_id},
            "action": {"name": "sell"},
            "resource": {"type": "application", "id": str(self.app)},
        }
        if kind == "subject-search":
            del body["subject"]["id"]
        elif kind == "resource-search":
            del body["resource"]["id"]
        elif kind == "action-search":
            del body["action"]
        return body

    def body(self, kind: str, case: Case) -> dict[str, Any]:
        """The valid request with the changes of the module."""
        valid = self.valid(kind)
        body = deepcopy(valid)
        for name, value in case.changes.items():
            *parents, last = name.split(".")
            target = body
            for parent in parents:
                target = target[parent]
            if value is REMOVED:
                del target[last]
            else:
                target[last] = deepcopy(value)
        for index, item in enumerate(body.get("evaluations", ())):
            if item == "valid":
                body["evaluations"][index] = valid
            elif item.get("resource") == "valid":
                item["resource"] = valid["resource"]
        properties = body.get("resource", {}).get("properties") if isinstance(body.get("resource"), dict) else None
        if properties == {"project_id": "valid"}:
            body["resource"]["properties"] = {"project_id": self.project}
        return body

    def send(self, kind: str, body: Any, case: Case) -> httpx.Response:
        headers = {**self.headers, "Content-Type": case.content_type, **case.headers}
        headers = {name: value for name, value in headers.items() if value}
        path = f"/access/v1/{PATHS[kind][0]}"
        if case.raw is not None:
            return self.client.request(case.method, path, content=case.raw, headers=headers)
        return self.client.request(case.method, path, json=body, headers=headers)


@pytest.fixture(scope="module")
def fixture(server: Server) -> Any:
    with server.client() as client:
        yield Fixture(server, client)


@pytest.mark.parametrize(("kind", "name"), MODULES, ids=[f"authzen-pdp-{kind}-{name}" for kind, name in MODULES])
def test_module(fixture: Fixture, kind: str, name: str) -> None:
    case = PATHS[kind][1][name]
    body = fixture.body(kind, case)
    response = fixture.send(kind, body, case)
    assert response.status_code == case.status, response.text
    if case.status != 200:
        return
    answer = response.json()
    if case.same_as_valid:
        assert answer == fixture.send(kind, fixture.valid(kind), Case()).json()
    if "X-Request-ID" in case.headers:
        assert response.headers["X-Request-ID"] == case.headers["X-Request-ID"]
    if isinstance(case.decision, list):
        assert [item["decision"] for item in answer["evaluations"]] == case.decision
    elif case.decision is not None:
        assert answer["decision"] is case.decision
    if case.results:
        assert bool(answer["results"]) is (case.results == "some")
    if name == "paginated-subject-search":
        check_pages(fixture, body)


def check_pages(fixture: Fixture, body: dict[str, Any]) -> None:
    """Follows the tokens: every subject comes once."""
    found: list[str] = []
    token = ""
    while True:
        page = {"limit": 1, **({"token": token} if token else {})}
        answer = fixture.send("subject-search", {**body, "page": page}, Case()).json()
        found += [item["id"] for item in answer["results"]]
        token = answer["page"]["next_token"]
        if not token:
            break
    assert found == sorted(user.user_id for user in fixture.users)


@pytest.mark.parametrize("plan", AUTHZEN_PLANS, ids=lambda plan: plan.title)
def test_documentation_has_the_results_of_the_plan(plan: Plan) -> None:
    assert table(plan) in PAGE.read_text(), f"docs/conformance.rst must contain:\n{table(plan)}"
