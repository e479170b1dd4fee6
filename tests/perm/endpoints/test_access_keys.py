"""POST /api/permissions/accessKey (§2.6, §4.8)."""

import re

from tests.perm.endpoints.conftest import Studio

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def test_value_of_an_access_key_is_shown_only_when_it_is_created(studio: Studio) -> None:
    app = studio.application()
    created = studio.root.call("accessKey", action="save", application_id=str(app), data={"comment": "ci 🔑"})
    key = created.data
    assert set(key) == {"id", "application_id", "hash", "comment", "created", "modified"}
    assert (key["application_id"], key["comment"]) == (app, "ci 🔑")
    assert len(key["hash"]) >= 43
    assert RFC3339.fullmatch(key["created"])
    assert RFC3339.fullmatch(key["modified"])
    shown = {name: value for name, value in key.items() if name != "hash"}
    assert studio.root.call("accessKey", action="get", application_id=app).body == {"status": "OK", "data": [shown]}
    assert key["hash"] not in str(studio.root.call("audit", data={"application_id": app}).body)
    assert key["hash"] not in studio.server.log()


def test_last_used_of_an_access_key_is_set_by_its_first_use(studio: Studio) -> None:
    app = studio.application()
    key = studio.root.call("accessKey", action="save", application_id=app, data={}).data
    body = {"action": "get", "application_id": app, "data": {"type": "roles", "user_id": studio.root.user_id}}
    assert studio.root.call("meta/data", {"Authorization": f"Bearer {key['hash']}"}, **body).status == 200
    (listed,) = studio.root.call("accessKey", action="get", application_id=app).data
    assert RFC3339.fullmatch(listed["last_used"])


def test_third_access_key_is_a_conflict_until_one_is_deleted(studio: Studio) -> None:
    app = studio.application()
    save = {"action": "save", "application_id": app, "data": {}}
    first = studio.root.call("accessKey", **save).data
    assert studio.root.call("accessKey", **save).status == 200
    third = studio.root.call("accessKey", **save)
    assert (third.status, third.body["status"]) == (409, "ERROR")
    assert len(studio.root.call("accessKey", action="get", application_id=app).data) == 2
    deleted = studio.root.call("accessKey", action="delete", application_id=app, data={"id": first["id"]})
    assert deleted.body == {"status": "OK"}
    assert studio.root.call("accessKey", **save).status == 200


def test_access_key_is_deleted_only_through_its_own_application(studio: Studio) -> None:
    app, other = studio.application(), studio.application()
    key = studio.root.call("accessKey", action="save", application_id=app, data={}).data
    response = studio.root.call("accessKey", action="delete", application_id=other, data={"id": key["id"]})
    assert (response.status, response.body["error"]) == (404, "access key not found")
    assert len(studio.root.call("accessKey", action="get", application_id=app).data) == 1


def test_access_key_save_and_delete_require_data(studio: Studio) -> None:
    app = studio.application()
    assert studio.root.call("accessKey", action="get", application_id=app).data == []
    for action in ("save", "delete"):
        response = studio.root.call("accessKey", action=action, application_id=app)
        assert (response.status, response.body["error"]) == (400, "data: is required")
    assert studio.root.call("accessKey", action="delete", application_id=app, data={}).status == 400
    comment = {"comment": "x" * 257}
    assert studio.root.call("accessKey", action="save", application_id=app, data=comment).status == 400
