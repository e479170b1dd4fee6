"""POST /api/permissions/meta/schema (§2.8, §4.10)."""

import time
from typing import Any

import pytest

from sso.perm.stores.builtin_roles import DEFAULT_LOGIN, DEFAULT_SECRET_DATA
from tests.kit.browser import query
from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio


def save(user: ApiUser, app: int, if_match: str | None = None, /, **data: Any) -> ApiResponse:
    headers = {"If-Match": if_match} if if_match is not None else None
    return user.call("meta/schema", headers, action="save", application_id=app, data=data)


def get(user: ApiUser, app: int) -> ApiResponse:
    return user.call("meta/schema", action="get", application_id=app)


def test_new_application_has_the_default_schema(studio: Studio) -> None:
    app = studio.application()
    assert get(studio.root, app).body == {
        "status": "OK",
        "data": {
            "application_id": app,
            "login": DEFAULT_LOGIN,
            "private_data": {},
            "public_data": {},
            "roles": {},
            "secret_data": DEFAULT_SECRET_DATA,
            "version": 1,
            "updated_at": 0,
        },
    }
    assert (DEFAULT_LOGIN["can"]["value"], DEFAULT_LOGIN["cannot"]["value"]) == (True, False)


def test_schema_save_raises_the_version_and_sets_the_time(studio: Studio) -> None:
    app = studio.application()
    for version in (2, 3):
        saved = save(studio.root, app, public_data={"a": {"value": version}}, version=99, updated_at=5).data
        assert saved["version"] == version
        assert abs(saved["updated_at"] - time.time()) < 60
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


def test_schema_save_keeps_roles_that_it_leaves_out(studio: Studio) -> None:
    app = studio.application()
    studio.role(app, "old", "x")
    roles = {"new": {"meta": {"private_data": {"y": {"value": True}}}, "user_limit": 3}}
    saved = save(studio.root, app, roles=roles).data["roles"]
    assert list(saved) == ["new", "old"]
    assert saved["new"]["user_limit"] == 3
    assert save(studio.root, app, roles={"new": {"name": "other"}}).status == 400
    assert save(studio.root, app, roles={"a.b": {}}).status == 400
    assert save(studio.root, app, roles=[]).status == 400


def test_schema_save_warns_about_unknown_fields(studio: Studio) -> None:
    app = studio.application()
    response = save(studio.root, app, chat={"mute": {"value": True}})
    assert response.body["warnings"] == ["chat: unknown field, ignored"]
    assert studio.rules_of(studio.user(), app) == []


def test_secret_data_of_a_schema_is_saved_by_root_only(studio: Studio) -> None:
    app, ann = studio.application(), studio.user()
    studio.give_secret(ann, app, "canModifySchema")
    open_door = {"application": {"canSave": {"value": True}}}
    response = save(ann, app, secret_data=open_door, public_data={"a": {"value": True}})
    assert response.data["secret_data"] == DEFAULT_SECRET_DATA
    assert response.data["public_data"] == {"a": {"value": True}}
    saved = save(studio.root, app, secret_data=open_door).data["secret_data"]
    assert saved == DEFAULT_SECRET_DATA | {"application": DEFAULT_SECRET_DATA["application"] | open_door["application"]}
    assert studio.user().call("application", action="save", data={"application_id": app}).status == 200


def test_schema_save_keeps_login_and_secret_rules_that_it_leaves_out(studio: Studio) -> None:
    app = studio.application(login={"cannot": {"value": True}}, secret_data={"extra": {"value": 1}})
    assert get(studio.root, app).data["login"] == DEFAULT_LOGIN | {"cannot": {"value": True}}
    data = save(studio.root, app, login={"can": {"value": False}}).data
    assert data["login"] == {"can": {"value": False}, "cannot": {"value": True}}
    meta = {"roles": {"canRead": {"value": "all"}}}
    secret = save(studio.root, app, secret_data={"meta": meta}).data["secret_data"]
    roles = DEFAULT_SECRET_DATA["meta"]["roles"] | meta["roles"]
    assert secret == DEFAULT_SECRET_DATA | {"meta": DEFAULT_SECRET_DATA["meta"] | {"roles": roles}}
    other = {"application": {"canRead": {"value": True}}}
    secret = save(studio.root, app, secret_data=other).data["secret_data"]
    assert secret["meta"]["roles"] == roles
    assert secret["application"]["canRead"] == {"value": True}
    assert save(studio.root, app, login={}).data["login"] == data["login"]


def test_incomplete_stored_schema_is_returned_complete(studio: Studio) -> None:
    app, ann = studio.application(), studio.user()
    statement = """UPDATE applications SET login = '{}', revision = revision + 1,
        secret_data = '{"application": {"canRead": {"value": true}}, "meta": {}}' WHERE application_id = $1"""
    query(studio.server, statement, app)
    data = get(studio.root, app).data
    assert data["login"] == DEFAULT_LOGIN
    application = DEFAULT_SECRET_DATA["application"] | {"canRead": {"value": True}}
    assert data["secret_data"] == DEFAULT_SECRET_DATA | {"application": application}
    tree = studio.rules_of(ann, app, "tree")
    assert (tree["login"], tree["secret_data"]) == (data["login"], data["secret_data"])


def test_stale_schema_save_after_a_role_change_is_refused(studio: Studio) -> None:
    """A save of an old result of get would restore a deleted default role for all users."""
    app = studio.application()
    studio.role(app, "everyone", "x", default=True)
    read = get(studio.root, app).data
    assert studio.root.call("roles", action="delete", application_id=app, data={"name": "everyone"}).status == 200
    stale = save(studio.root, app, str(read["version"]), roles=read["roles"])
    assert stale.status == 409
    assert get(studio.root, app).data["roles"] == {}
    fresh = get(studio.root, app).data["version"]
    studio.role(app, "other", "y")
    assert save(studio.root, app, str(fresh)).status == 409


def test_role_changes_of_sso_apply_raise_the_schema_version(studio: Studio) -> None:
    app = studio.application()
    before = get(studio.root, app).data["version"]
    document = {"roles": {str(app): [{"name": "r", "meta": {"private_data": {"x": {"value": True}}}}]}}
    studio.server.apply(document)
    after = get(studio.root, app).data["version"]
    assert after > before
    studio.server.apply(document)
    assert get(studio.root, app).data["version"] == after


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
        {"login": {"can": {}}},
        {"secret_data": {"application": {"value": True}}},
        {"secret_data": {"meta": {"roles": {"value": "all"}}}},
        {"secret_data": {"application": {"canRead": {"deeper": {"value": True}}}}},
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
def test_invalid_schema_is_rejected_and_changes_nothing(
    studio: Studio, unchanged_app: int, data: dict[str, Any]
) -> None:
    response = save(studio.root, unchanged_app, **data)
    assert (response.status, response.body["status"]) == (400, "ERROR")
    assert get(studio.root, unchanged_app).data["version"] == 1


def test_schema_save_with_an_invalid_role_changes_nothing(studio: Studio) -> None:
    app = studio.application(private_data={"ban": {"value": False, "protected": True}})
    roles = {"a": {}, "b": {"meta": {"private_data": {"ban": {"value": True}}}}}
    assert save(studio.root, app, public_data={"x": {"value": 1}}, roles=roles).status == 400
    data = get(studio.root, app).data
    assert (data["public_data"], data["roles"]) == ({}, {})


def test_schema_save_requires_data(studio: Studio) -> None:
    response = studio.root.call("meta/schema", action="save", application_id=studio.application())
    assert (response.status, response.body["error"]) == (400, "data: is required")


def test_unicode_in_a_schema_is_kept(studio: Studio) -> None:
    app = studio.application()
    text = "Grüße, 世界, 👩‍🚀, e\u0301, \u202e"
    saved = save(studio.root, app, public_data={"a": {"value": text, "description": text}})
    assert saved.data["public_data"]["a"] == {"value": text, "description": text}
