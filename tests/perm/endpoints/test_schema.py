"""POST /api/permissions/meta/schema (§2.8, §4.10)."""

import time
from typing import Any

import pytest

from sso.perm.central import NEW_LOGIN, NEW_SECRET_DATA
from tests.perm.endpoints.conftest import Answer, Person, Studio


def save(person: Person, app: int, if_match: str | None = None, /, **data: Any) -> Answer:
    headers = {"If-Match": if_match} if if_match is not None else None
    return person.call("meta/schema", headers, action="save", application_id=app, data=data)


def get(person: Person, app: int) -> Answer:
    return person.call("meta/schema", action="get", application_id=app)


def test_a_new_application_has_the_defaults(studio: Studio) -> None:
    app = studio.application()
    assert get(studio.root, app).body == {
        "status": "OK",
        "data": {
            "application_id": app,
            "login": NEW_LOGIN,
            "private_data": {},
            "public_data": {},
            "roles": {},
            "secret_data": NEW_SECRET_DATA,
            "version": 1,
            "updated_at": 0,
        },
    }
    assert (NEW_LOGIN["can"]["value"], NEW_LOGIN["cannot"]["value"]) == (True, False)


def test_each_save_raises_the_version_and_sets_the_time(studio: Studio) -> None:
    app = studio.application()
    for version in (2, 3):
        saved = save(studio.root, app, public_data={"a": {"value": version}}, version=99, updated_at=5).data
        assert saved["version"] == version
        assert abs(saved["updated_at"] - time.time()) < 5
        assert saved == get(studio.root, app).data


def test_each_part_given_is_replaced_and_the_others_stay(studio: Studio) -> None:
    app = studio.application(public_data={"a": {"value": 1}}, private_data={"b": {"value": 2}})
    save(studio.root, app, public_data={"c": {"value": 3}})
    data = get(studio.root, app).data
    assert data["public_data"] == {"c": {"value": 3}}
    assert data["private_data"] == {"b": {"value": 2}}
    assert save(studio.root, app, **data).data == data | {
        "version": data["version"] + 1,
        "updated_at": get(studio.root, app).data["updated_at"],
    }


def test_named_roles_are_saved_and_the_others_stay(studio: Studio) -> None:
    app = studio.application()
    studio.role(app, "old", "x")
    roles = {"new": {"meta": {"private_data": {"y": {"value": True}}}, "user_limit": 3}}
    saved = save(studio.root, app, roles=roles).data["roles"]
    assert list(saved) == ["new", "old"]
    assert saved["new"]["user_limit"] == 3
    assert save(studio.root, app, roles={"new": {"name": "other"}}).status == 400
    assert save(studio.root, app, roles={"a.b": {}}).status == 400
    assert save(studio.root, app, roles=[]).status == 400


def test_permissions_outside_the_sections_are_ignored_with_a_warning(studio: Studio) -> None:
    app = studio.application()
    answer = save(studio.root, app, chat={"mute": {"value": True}})
    assert answer.body["warnings"] == ["chat: unknown field, ignored"]
    assert studio.rules_of(studio.person(), app) == []


def test_secret_data_is_ignored_except_from_root(studio: Studio) -> None:
    app, ann = studio.application(), studio.person()
    studio.give_secret(ann, app, "canModifySchema")
    open_door = {"application": {"canSave": {"value": True}}}
    answer = save(ann, app, secret_data=open_door, public_data={"a": {"value": True}})
    assert answer.data["secret_data"] == NEW_SECRET_DATA
    assert answer.data["public_data"] == {"a": {"value": True}}
    assert save(studio.root, app, secret_data=open_door).data["secret_data"] == open_door
    assert studio.person().call("application", action="save", data={"application_id": app}).status == 200


def test_if_match_must_be_the_version(studio: Studio) -> None:
    app = studio.application()
    assert save(studio.root, app, "1").data["version"] == 2
    stale = save(studio.root, app, "1", public_data={"a": {"value": 1}})
    assert (stale.status, stale.body["status"]) == (409, "ERROR")
    assert get(studio.root, app).data["public_data"] == {}
    assert save(studio.root, app, '"2"').status == 200
    assert save(studio.root, app, "*").status == 200
    for wrong in ("", "x", "-1", "1.0", "1,2", "9" * 30):
        assert save(studio.root, app, wrong).status == 400


@pytest.mark.parametrize(
    "data",
    [
        {"login": {"may": {"value": True}}},
        {"login": {"can": {"value": "yes"}}},
        {"login": []},
        {"secret_data": {"application": {"canRead": {"value": "yes"}}}},
        {"secret_data": {"meta": {"roles": {"canRead": {"value": "some"}}}}},
        {"public_data": {"value": True}},
        {"public_data": {"a": True}},
        {"public_data": {"a": {"value": True, "b": {"value": True}}}},
        {"public_data": {"a": {"value": True, "expired": 5}}},
        {"public_data": {"a": {"value": True, "protected": "yes"}}},
        {"public_data": {"a": {"value": True, "description": 5}}},
        {"private_data": {"projectAccess": {}}},
        {"private_data": {"a.b": {"value": True}}},
        {"private_data": None},
    ],
)
def test_a_wrong_schema_is_refused_and_changes_nothing(studio: Studio, data: dict[str, Any]) -> None:
    app = studio.application()
    answer = save(studio.root, app, **data)
    assert (answer.status, answer.body["status"]) == (400, "ERROR")
    assert get(studio.root, app).data["version"] == 1


def test_a_wrong_role_undoes_the_whole_save(studio: Studio) -> None:
    app = studio.application(private_data={"ban": {"value": False, "protected": True}})
    roles = {"a": {}, "b": {"meta": {"private_data": {"ban": {"value": True}}}}}
    assert save(studio.root, app, public_data={"x": {"value": 1}}, roles=roles).status == 400
    data = get(studio.root, app).data
    assert (data["public_data"], data["roles"]) == ({}, {})


def test_data_is_required_for_save(studio: Studio) -> None:
    answer = studio.root.call("meta/schema", action="save", application_id=studio.application())
    assert (answer.status, answer.body["error"]) == (400, "data: is required")


def test_ordinary_unicode_survives(studio: Studio) -> None:
    app = studio.application()
    text = "Grüße, 世界, 👩‍🚀, e\u0301, \u202e"
    saved = save(studio.root, app, public_data={"a": {"value": text, "description": text}})
    assert saved.data["public_data"]["a"] == {"value": text, "description": text}
