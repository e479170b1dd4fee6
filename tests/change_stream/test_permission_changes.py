"""Changes of effective permissions are events: one for each user and application, and none without effect."""

import json
from pathlib import Path
from typing import Any

from tests.admin.conftest import Administrator
from tests.change_stream.conftest import changes_of, newest_cursor, service_client_of
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio


def of_application(events: list[dict[str, Any]], application_id: int) -> list[dict[str, Any]]:
    return [event for event in events if event.get("application_id") == application_id]


def test_gained_and_lost_permissions_are_events(studio: Studio, root: Administrator) -> None:
    user, application_id = studio.user(), studio.application()
    start = newest_cursor(root)
    studio.save_data(user, application_id, private_data={"chat": {"kick": {"value": True}}})
    studio.save_data(user, application_id, private_data={"chat": {"kick": {"value": True}}})  # changes nothing
    studio.save_data(user, application_id, private_data={"chat": {"mute": {"value": True}}})
    first, second = of_application(changes_of(root, start, user.user_id, 2), application_id)
    assert first.keys() == {"id", "user_id", "application_id", "gained", "lost", "time"}
    assert (first["user_id"], first["application_id"], first["lost"]) == (user.user_id, application_id, [])
    assert [rule for rule in first["gained"] if "kick" in rule]
    assert second["lost"] == first["gained"]
    assert [rule for rule in second["gained"] if "mute" in rule]


def test_client_of_an_application_follows_its_permissions(server: Server, studio: Studio, root: Administrator) -> None:
    user, application_id, other_id = studio.user(), studio.application(), studio.application()
    client = service_client_of(server, studio, application_id)
    start = newest_cursor(client)
    for each in (other_id, application_id):
        studio.save_data(user, each, private_data={"chat": {"kick": {"value": True}}})
    events = changes_of(client, start, user.user_id, 1)
    assert {event["application_id"] for event in events} == {application_id}


def test_tag_that_meets_the_condition_of_a_role_is_a_gain(studio: Studio, root: Administrator) -> None:
    user, application_id = studio.user(), studio.application()
    studio.role(application_id, "tester", "kick", condition={"tag": "tester"})
    start = newest_cursor(root)
    for tags in (["tester"], []):
        response = root.request("PATCH", f"/users/{user.user_id}", json={"tags": tags})
        assert response.status_code == 200, response.text
    gain, loss = of_application(changes_of(root, start, user.user_id, 2), application_id)
    assert (gain["gained"], gain["lost"]) == (loss["lost"], loss["gained"])
    assert any("kick" in rule for rule in gain["gained"])


def test_apply_and_commands_record_changes(server: Server, studio: Studio, root: Administrator, tmp_path: Path) -> None:
    user, application_id = studio.user(), studio.application()
    studio.role(application_id, "tester", "kick")
    start = newest_cursor(root)
    assigned = {"user_id": user.user_id, "application_id": application_id, "data": {"roles": ["tester"]}}
    document = tmp_path / "state.json"
    document.write_text(json.dumps({"permissions": [assigned]}))
    server.sso("apply", str(document))
    server.sso("apply", str(document))  # changes nothing
    server.sso("role", "unassign", user.login, "tester", "--app", str(application_id))
    gain, loss = of_application(changes_of(root, start, user.user_id, 2), application_id)
    assert (gain["gained"], gain["lost"]) == (loss["lost"], loss["gained"])
    assert any("kick" in rule for rule in gain["gained"])


def test_dry_run_records_nothing(studio: Studio, root: Administrator) -> None:
    user, application_id = studio.user(), studio.application()
    start = newest_cursor(root)
    data = {"user_id": user.user_id, "private_data": {"chat": {"kick": {"value": True}}}}
    save = {"action": "save", "application_id": application_id, "data": data}
    assert studio.root.call("meta/data", **save, options={"dry_run": True}).body["total"] == 1
    studio.save_data(user, application_id, private_data={"chat": {"mute": {"value": True}}})
    (event,) = of_application(changes_of(root, start, user.user_id, 1), application_id)
    assert not any("kick" in rule for rule in event["gained"])
