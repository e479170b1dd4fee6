"""Time windows of conditions: every worker follows them without a write, the past too; explanations and dry runs."""

import time
from typing import Any

import pytest

from tests.kit.server import until
from tests.perm.endpoints.conftest import Studio
from tests.perm.endpoints.connections import Connection, connect_to_each_worker

pytestmark = pytest.mark.two_workers

SOON_S = 4


def allows(reader: Connection, application_id: int, user_id: str) -> tuple[bool, bool]:
    """Whether list_short has the rule, and whether a check allows it."""
    body: dict[str, Any] = {"action": "get", "application_id": application_id, "data": {"type": "list_short"}}
    listed = reader.call("meta/data", **body)
    questions = {"questions": [{"user_id": user_id, "rule": "patrol"}]}
    checked = reader.call("check", application_id=application_id, data=questions)
    return "patrol" in listed.data, checked.data[0]["allow"]


def test_window_begins_and_ends_on_every_worker_without_a_write(studio: Studio) -> None:
    ann, app = studio.user(), studio.application()
    readers = connect_to_each_worker(studio.server, ann)
    assert len(readers) == 2
    for edge, is_open in (("from", False), ("until", True)):
        moment = int(time.time()) + SOON_S
        studio.role(app, "window", "patrol", condition={"time": {edge: moment}})
        answers = [allows(reader, app, ann.user_id) for reader in readers]  # this fills any cache
        if time.time() < moment - 1:
            assert answers == [(is_open, is_open)] * 2

        def has_changed(expected: bool = not is_open) -> bool:
            return [allows(reader, app, ann.user_id) for reader in readers] == [(expected, expected)] * 2

        time.sleep(max(0, moment - time.time()))
        assert until(has_changed)
    past = {"user_id": ann.user_id, "type": "list_short"}
    for at, expected in ((moment - 1, ["patrol"]), (moment, [])):
        body = {"application_id": app, "data": past, "options": {"at": at}}
        assert studio.root.call("meta/data", action="get", **body).data == expected
    for reader in readers:
        reader.close()


def test_explanation_dry_run_and_refusal_name_the_window(studio: Studio) -> None:
    ann, app = studio.user(), studio.application()
    weekly = [{"days": ["sat", "sun"], "from": "10:00", "to": "22:00"}]
    ended = {"until": 1000, "weekly": weekly, "zone": "Europe/Berlin"}
    studio.role(app, "window", "patrol", condition={"time": ended})
    body: dict[str, Any] = {"application_id": app, "data": {"user_id": ann.user_id}, "options": {"explain": "patrol"}}
    (reason,) = studio.root.call("meta/data", action="get", **body).body["explain"]["reasons"]
    (compared,) = reason["compared"]
    text = "until 1970-01-01 00:16:40Z, Saturday and Sunday 10:00-22:00 Europe/Berlin"
    assert compared == {"member": "time", "asked": text, "found": None, "holds": False}
    later: dict[str, Any] = {"name": "window", "condition": {"time": {"from": 32_000_000_000}}}
    dry = studio.root.call("roles", action="save", application_id=app, data=later, options={"dry_run": True}).body
    assert dry["users"] == []
    assert dry["warnings"][-1] == (
        "roles: the time window of window: outside from 2984-01-15 08:53:20Z; next begins 2984-01-15 08:53:20Z"
    )
    wrong = {"name": "window", "condition": {"time": {"zone": "Mars/Olympus"}}}
    response = studio.root.call("roles", action="save", application_id=app, data=wrong)
    assert (response.status, response.body["error"]) == (
        400,
        "condition.time.zone: must be a time zone such as Europe/Berlin, or UTC; there is no such zone",
    )
