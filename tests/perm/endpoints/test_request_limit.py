"""Requests to the permission endpoints that write or are expensive count towards SSO_RATE_ADMIN; usual reads do not."""

from collections.abc import Iterator
from typing import Any

import pytest

from sso.core.ids import digest
from tests.kit.browser import query
from tests.kit.server import Server, running
from tests.perm.endpoints.conftest import ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey

LIMIT = 7


@pytest.fixture(scope="module")
def limited(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    settings = {**server.settings, "SSO_RATE_ADMIN": str(LIMIT), "SSO_BIND": "127.0.0.1:0", "SSO_WORKERS": "1"}
    with running(tmp_path_factory.mktemp("limited"), **settings) as other, other.client() as client:
        yield Studio(other, client)


def stop_the_minute(studio: Studio, user: ApiUser) -> None:
    """The minute of the counter does not end while the test runs, however slow it is."""
    change = "UPDATE throttle SET since = now() + interval '10 minutes', expires = 'infinity' WHERE key = $1"
    query(studio.server, change, digest(f"admin:user {user.user_id}"))


def expensive_requests(app: int) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("roles", {"action": "save", "application_id": app, "data": {"name": "guard"}}),
        ("meta/schema", {"action": "get", "application_id": app}),
        ("meta/data", {"action": "get", "application_id": app, "data": {}, "options": {"explain": True}}),
        ("meta/data", {"action": "get", "application_id": app, "data": {}, "options": {"at": 0}}),
        ("check", {"application_id": app, "data": {"questions": []}, "options": {"reason": True}}),
        ("meta/data", {"action": "save", "application_id": app, "data": {"roles": []}}),
        ("audit", {"data": {}}),
    ]


def test_writes_and_expensive_reads_of_a_user_are_limited_and_frequent_reads_are_not(limited: Studio, app: int) -> None:
    user = limited.user()
    for number, (path, body) in enumerate(expensive_requests(app)):
        assert user.call(path, **body).status != 429, path
        if number == 0:
            stop_the_minute(limited, user)
    for path, body in expensive_requests(app):
        refused = user.call(path, **body)
        assert (refused.status, refused.body["error"]) == (429, "too many requests, try again later"), path
    reads: tuple[tuple[str, dict[str, Any]], ...] = (
        ("user/info", {}),
        ("meta/data", {"action": "get", "application_id": app, "data": {"type": "list"}}),
        ("check", {"application_id": app, "data": {"questions": [{"rule": "chat"}]}}),
    )
    for path, body in reads:
        assert user.call(path, **body).status == 200, path
    assert limited.user().call("meta/schema", action="get", application_id=app).status == 403, "another user"


def test_service_saves_the_data_of_users_of_its_own_application_as_often_as_it_wants(
    limited: Studio, app: int, key: ServiceKey
) -> None:
    user = limited.user()
    service = {"Service-Jwt": key.sign(limited.server, app), "Factor": ""}
    data = {"user_id": user.user_id, "private_data": {}}
    for number in range(2 * LIMIT + 4):
        application_id = app if number % 2 else str(app)
        response = user.call("meta/data", service, action="save", application_id=application_id, data=data)
        assert response.status == 200, response.body
