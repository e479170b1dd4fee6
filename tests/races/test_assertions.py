"""Two concurrent saves that break an assertion only together: one of them is refused. Long run: SSO_TEST_ROUNDS=200."""

import os
from typing import Any

import httpx
import pytest
import trio

from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio, studio

__all__ = ["studio"]

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
pytestmark = [pytest.mark.timeout(120 + ROUNDS * 10), pytest.mark.two_workers]

KICK = {"private_data": {"chat": {"kick": {"value": True}}}}
Call = tuple[str, str, dict[str, Any]]  # method, path, body


def concurrently(studio: Studio, *calls: Call) -> list[int]:
    """The status codes of calls of root, sent at once over connections that both workers share."""
    headers = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR}
    statuses: dict[int, int] = {}

    async def send(number: int, call: Call) -> None:
        method, path, body = call
        async with httpx.AsyncClient(base_url=studio.server.base_url, timeout=60, headers=headers) as client:
            await client.get("/healthz")
            ready.append(number)
            if len(ready) == len(calls):
                start.set()
            await start.wait()
            statuses[number] = (await client.request(method, path, json=body)).status_code

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            for number, call in enumerate(calls):
                nursery.start_soon(send, number, call)

    ready: list[int] = []
    start = trio.Event()
    trio.run(run)
    return [statuses[number] for number in range(len(calls))]


def permissions(path: str, **body: Any) -> Call:
    return "POST", f"/api/permissions/{path}", body


def call(studio: Studio, *calls: Call) -> None:
    headers = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR}
    for method, path, body in calls:
        response = studio.client.request(method, path, json=body, headers=headers)
        assert response.status_code == 200, response.text


def assertion(app: int, statement: str) -> Call:
    return "PUT", f"/api/admin/applications/{app}/assertions", {"assertions": [statement]}


def role(app: int, name: str, **fields: Any) -> Call:
    return permissions("roles", action="save", application_id=app, data={"name": name, **fields})


def assigned(app: int, user: ApiUser, *roles: str) -> Call:
    data = {"user_id": user.user_id, "roles": list(roles)}
    return permissions("meta/data", action="save", application_id=app, data=data)


def test_role_and_assignment(studio: Studio) -> None:
    """A role gets a rule while a user gets the role."""
    app, user = studio.application(), studio.user()
    for _ in range(ROUNDS):
        call(studio, role(app, "helper", meta={}), assigned(app, user))
        call(studio, assertion(app, "only staff may chat.kick"))
        assert sorted(concurrently(studio, role(app, "helper", meta=KICK), assigned(app, user, "helper"))) == [200, 409]


def test_group_and_tags(studio: Studio) -> None:
    """A group with a role gets a condition while a user gets the tag that the condition asks for."""
    project = studio.project()
    app, user = studio.application(project), studio.user()
    group = studio.group(project)
    services = {str(app): {"groups": [{"group_id": group, "role": "staff", "action": "grant"}]}}
    call(
        studio,
        role(app, "staff", meta=KICK),
        permissions("project", action="save", data={"id": project, "settings": {"services": services}}),
        assertion(app, f"{user.login} may not chat.kick"),
    )
    condition = [{"title": "Crew", "condition": {"tag": "crew"}}]
    tags = f"/api/admin/users/{user.user_id}"
    for _ in range(ROUNDS):
        call(
            studio, permissions("group/access", group_id=group, data={"conditions": []}), ("PATCH", tags, {"tags": []})
        )
        statuses = concurrently(
            studio,
            permissions("group/access", group_id=group, data={"conditions": condition}),
            ("PATCH", tags, {"tags": ["crew"]}),
        )
        assert sorted(statuses) == [200, 409]
