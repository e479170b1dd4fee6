"""GET /api/admin/changes: pages, long polls, cursors and rights, on a server with two workers."""

import threading
import time
from typing import Any

import httpx
import pytest

from tests.admin.conftest import Administrator, administrator
from tests.change_stream.conftest import changes_of, newest_cursor, service_client_of
from tests.kit.server import Server, until
from tests.perm.endpoints.conftest import Studio
from tests.perm.endpoints.tokens import ServiceKey

pytestmark = pytest.mark.two_workers


def set_disabled(root: Administrator, user_id: str, disabled: bool) -> None:
    response = root.request("PATCH", f"/users/{user_id}", json={"disabled": disabled})
    assert response.status_code == 200, response.text


def test_states_of_a_user_are_events_in_their_order(studio: Studio, root: Administrator) -> None:
    user = studio.user()
    start = newest_cursor(root)
    set_disabled(root, user.user_id, True)
    set_disabled(root, user.user_id, True)  # changes nothing
    set_disabled(root, user.user_id, False)
    assert root.request("DELETE", f"/users/{user.user_id}").status_code == 200
    set_disabled(root, user.user_id, False)
    events = changes_of(root, start, user.user_id, 4)
    assert [event["type"] for event in events] == ["user_disabled", "user_enabled", "user_deleted", "user_restored"]
    ids = [event["id"] for event in events]
    assert ids == sorted(set(ids))
    assert events[2]["erasure_due"] > events[2]["time"]


def test_command_line_records_events(server: Server, studio: Studio, root: Administrator) -> None:
    user = studio.user()
    start = newest_cursor(root)
    server.sso("user", "disable", user.login)
    server.sso("user", "disable", user.login)
    server.sso("user", "enable", user.login)
    server.sso("user", "delete", user.login, "--now", "--yes")
    events = changes_of(root, start, user.user_id, 1)
    assert events[-1]["type"] == "user_erased", events
    assert [event["type"] for event in changes_of(root, start, user.user_id, 1)] == ["user_erased"]


def test_rotated_and_retired_keys_are_events(server: Server, root: Administrator) -> None:
    start = newest_cursor(root)
    server.sso("key", "rotate")

    def rotated() -> list[dict[str, str]]:
        events = root.get("/changes", after=start, limit=200).json()["data"]
        return [event for event in events if event.get("type") == "key_rotated"]

    (event,) = until(rotated)
    assert event["kid"] in server.sso("key", "list").stdout


def test_keys_of_an_application_are_events_of_that_application(studio: Studio, root: Administrator) -> None:
    application_id, key, other = studio.application(), ServiceKey("ES256"), ServiceKey("ES256")
    start = newest_cursor(root)
    for public_key in (key.pem, key.pem, other.pem):  # the second changes nothing
        meta = {"application_id": application_id, "service_meta": {"public_key": public_key}}
        assert studio.root.call("application", action="save", data=meta).status == 200
    access_key = studio.root.call("accessKey", action="save", application_id=application_id, data={}).data
    studio.root.call("accessKey", action="delete", application_id=application_id, data={"id": access_key["id"]})

    def events() -> list[dict[str, Any]]:
        found = root.get("/changes", after=start, limit=200).json()["data"]
        return [event for event in found if event.get("application_id") == application_id and "type" in event]

    assert until(lambda: len(events()) == 5)
    assert [(event["type"], event.get("kid") or event["key_id"]) for event in events()] == [
        ("application_key_added", key.kid),
        ("application_key_removed", key.kid),
        ("application_key_added", other.kid),
        ("access_key_created", access_key["id"]),
        ("access_key_deleted", access_key["id"]),
    ]
    assert access_key["hash"] not in str(events())


def test_rotated_secret_of_a_client_is_an_event_without_the_secret(server: Server, root: Administrator) -> None:
    fields = {"client_id": "rotating", "profile": "oidc", "redirect_uris": ["https://rotating.example/cb"]}
    server.apply({"clients": [{**fields, "client_secret": "the first secret of the client"}]})
    start = newest_cursor(root)
    secret = server.sso("client", "rotate-secret", "rotating").stdout.split()[1]
    server.apply({"clients": [{**fields, "client_secret": "the second secret of the client"}]})

    def rotated() -> list[dict[str, str]]:
        events = root.get("/changes", after=start, limit=200).json()["data"]
        return [event for event in events if event.get("client_id") == "rotating"]

    assert until(lambda: len(rotated()) == 2)
    assert [event["type"] for event in rotated()] == ["client_secret_rotated"] * 2
    assert secret not in str(rotated())


def test_each_event_id_is_a_cursor(studio: Studio, root: Administrator) -> None:
    user = studio.user()
    start = newest_cursor(root)
    set_disabled(root, user.user_id, True)
    set_disabled(root, user.user_id, False)
    first, second = changes_of(root, start, user.user_id, 2)
    after_first = root.data("/changes", after=first["id"])
    assert second in after_first
    assert first not in after_first


def test_limit_pages_through_all_events(studio: Studio, root: Administrator) -> None:
    user = studio.user()
    start = newest_cursor(root)
    for _ in range(3):
        set_disabled(root, user.user_id, True)
        set_disabled(root, user.user_id, False)
    expected = changes_of(root, start, user.user_id, 6)
    paged: list[dict[str, Any]] = []
    after = start
    while len(paged) < 6:
        body = root.get("/changes", after=after, limit=1).json()
        assert len(body["data"]) == 1
        paged += [event for event in body["data"] if event.get("user_id") == user.user_id]
        after = body["next"]
    assert paged == expected


def test_long_poll_returns_when_another_worker_commits(studio: Studio, root: Administrator) -> None:
    """The polls of several connections are held by both workers."""
    user = studio.user()
    start = newest_cursor(root)
    answers: list[list[dict[str, str]]] = []

    def poll() -> None:
        with httpx.Client(base_url=root.client.base_url, timeout=90) as client:
            response = client.get("/api/admin/changes", params={"after": start, "wait": 60}, headers=root.headers)
            answers.append(response.json()["data"])

    threads = [threading.Thread(target=poll) for _ in range(6)]
    for thread in threads:
        thread.start()
    set_disabled(root, user.user_id, True)
    for thread in threads:
        thread.join()
    assert [[event["user_id"] for event in events] for events in answers] == [[user.user_id]] * 6


def test_long_poll_without_events_returns_an_empty_page_with_a_cursor(root: Administrator) -> None:
    start = newest_cursor(root)
    began = time.monotonic()
    response = root.get("/changes", after=start, wait=1)
    assert response.json() == {"status": "OK", "data": [], "next": start}
    assert time.monotonic() - began >= 1


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"after": "nonsense"}, "after"),
        ({"after": "0"}, "after"),
        ({"after": "9999999999999999"}, "after"),
        ({"after": "1000000000000000"}, "after"),
        ({"wait": "61"}, "wait"),
        ({"wait": "-1"}, "wait"),
        ({"wait": "soon"}, "wait"),
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"since": "1"}, "since"),
    ],
)
def test_wrong_parameters_are_400_and_named(root: Administrator, query: dict[str, str], field: str) -> None:
    for headers in ({}, {"Accept": "text/event-stream"}):
        response = root.request("GET", "/changes", headers, params=query)
        assert response.status_code == 400, response.text
        assert field in response.json()["error"]


def test_right_is_required(studio: Studio, root: Administrator) -> None:
    assert administrator(studio, "can_view_changes").get("/changes").status_code == 200
    other = administrator(studio, "can_view_users").get("/changes")
    assert (other.status_code, other.json()["error"]) == (403, "can_view_changes is required")


def test_service_client_of_an_application_reads_its_own_events_only(
    server: Server, studio: Studio, root: Administrator, service_client: Administrator
) -> None:
    user, application_id = studio.user(), studio.application()
    client = service_client_of(server, studio, application_id)
    assert client.get("/users").status_code == 403
    set_disabled(root, user.user_id, True)
    changes_of(service_client, "", user.user_id, 1)
    body = client.get("/changes", limit=200).json()
    assert {event.get("application_id") for event in body["data"]} <= {application_id}
    assert body["next"] == newest_cursor(client)
