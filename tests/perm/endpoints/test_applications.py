"""POST /api/permissions/application and its tags (§2.3, §4.4)."""

from typing import Any

import pytest

from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio


@pytest.fixture(scope="module")
def root(studio: Studio) -> ApiUser:
    return studio.root


def save(user: ApiUser, **data: Any) -> ApiResponse:
    return user.call("application", action="save", data=data)


def get(user: ApiUser, application_id: Any, **options: Any) -> ApiResponse:
    return user.call("application", action="get", data={"application_id": application_id}, options=options)


def test_application_create_get_save_and_delete_return_exact_responses(studio: Studio, root: ApiUser) -> None:
    created = save(root, name="Tanks")
    app = created.data["application_id"]
    assert created.body == {"status": "OK", "data": {"application_id": app, "name": "Tanks", "removed": False}}
    assert type(app) is int
    project = studio.project()
    saved = save(root, application_id=str(app), description="Boom 💥", project_id=project)
    full = {"application_id": app, "name": "Tanks", "description": "Boom 💥", "project_id": project}
    assert saved.body == {"status": "OK", "data": full | {"removed": False}}
    assert get(root, app).body == saved.body
    assert root.call("application", action="delete", data={"application_id": app}).body == {"status": "OK"}
    assert get(root, app).data == full | {"removed": True}


def test_result_of_get_can_be_saved_again(studio: Studio, root: ApiUser) -> None:
    app = studio.application()
    before = get(root, app, full=True).data
    response = save(root, **before, version=7, updated_at=1, created="x")
    assert response.body == {"status": "OK", "data": get(root, app).data}


def test_removed_changes_only_through_delete(studio: Studio, root: ApiUser) -> None:
    app = studio.application()
    assert save(root, application_id=app, removed=True).data["removed"] is False
    assert root.call("application", action="delete", data={"application_id": app}).status == 200
    assert save(root, application_id=app, removed=False).status == 403
    assert get(root, app).data["removed"] is True


def test_unknown_fields_are_named_in_warnings(studio: Studio, root: ApiUser) -> None:
    app = studio.application()
    response = save(root, application_id=app, colour="red", settings={"x": 1}, **{"<b>": 1})
    assert response.body["warnings"] == [
        "colour: unknown field, ignored",
        "a field: unknown field, ignored",
        "settings.x: unknown field, ignored",
    ]
    response = root.call("application", action="get", data={"application_id": app, "nmae": "x"}, options={"fill": True})
    assert response.body["warnings"] == ["nmae: unknown field, ignored", "options.fill: unknown field, ignored"]


def test_full_adds_settings_and_service_meta_for_callers_who_may_save(studio: Studio, root: ApiUser) -> None:
    app = studio.application()
    settings = {"restricted_domains": ["example.com"], "gdpr": {"char_sources": ["https://a.example.com/x"]}}
    meta = {"name": "Shop.1", "env": "prod", "tags": ["a:b"], "config_schema": {"$ref": "file:///etc/passwd"}}
    save(root, application_id=app, settings=settings, service_meta=meta | {"private_key": "SECRET"})
    assert get(root, app, full=True).data == get(root, app).data | {"settings": settings, "service_meta": meta}
    reader = studio.user()
    studio.give_secret(reader, app, "canRead")
    assert get(reader, app).status == 200
    assert get(reader, app, full=True).status == 403
    assert get(root, app, full="yes").status == 400


def test_private_key_is_never_returned(studio: Studio, root: ApiUser) -> None:
    app = studio.application()
    secret = "-----BEGIN PRIVATE KEY-----\nTOPSECRET\n-----END PRIVATE KEY-----"
    responses = [
        save(root, application_id=app, service_meta={"private_key": secret}),
        save(root, application_id=app, service_meta={"private_key": secret + "x", "public_key": secret}),
        get(root, app),
        get(root, app, full=True),
        root.call("audit", data={"application_id": app}),
    ]
    assert responses[1].status == 400
    keys = studio.client.get(f"/api/permissions/application/publicKeys/{app}").text
    assert "TOPSECRET" not in keys + str([response.body for response in responses]) + studio.server.log()


def test_members_of_service_meta_are_replaced_one_by_one(studio: Studio, root: ApiUser) -> None:
    app = studio.application()
    save(root, application_id=app, service_meta={"env": "dev", "url": "https://a.example.com"})
    save(root, application_id=app, service_meta={"env": "prod"})
    assert get(root, app, full=True).data["service_meta"] == {"env": "prod", "url": "https://a.example.com"}


def test_application_tags_are_set_by_the_tags_endpoint_and_by_save(studio: Studio, root: ApiUser) -> None:
    app = studio.application()
    response = root.call("application/tags", application_id=app, data={"tags": ["b", "a", "b"], "x": 1})
    assert response.body == get(root, app).body | {"warnings": ["x: unknown field, ignored"]}
    assert get(root, app, full=True).data["service_meta"] == {"tags": ["b", "a"]}
    save(root, application_id=app, service_meta={"tags": ["c"]})
    assert get(root, app, full=True).data["service_meta"] == {"tags": ["c"]}


@pytest.mark.parametrize(
    "meta",
    [{"name": "x" * 33}, {"tags": [f"t{n}" for n in range(11)]}, {"doc": "javascript:alert(1)"}],
)
def test_service_meta_beyond_its_limits_is_rejected(root: ApiUser, unchanged_app: int, meta: dict[str, Any]) -> None:
    assert save(root, application_id=unchanged_app, service_meta=meta).status == 400
    assert get(root, unchanged_app, full=True).data["service_meta"] == {}


def test_service_meta_at_its_limits_is_accepted(studio: Studio, root: ApiUser) -> None:
    tags = [f"{n}" + "x" * 63 for n in range(10)]
    meta = {"name": "A z_0." * 5 + "AB", "description": "é" * 1024, "tags": tags, "doc": "http://169.254.169.254/"}
    app = studio.application()
    assert save(root, application_id=app, service_meta=meta).status == 200
    assert get(root, app, full=True).data["service_meta"] == meta


@pytest.mark.parametrize("settings", [{"gdpr": {"char_sources": ["file:///x"]}}, {"restricted_domains": ["a@b"]}])
def test_invalid_application_settings_are_rejected(root: ApiUser, unchanged_app: int, settings: dict[str, Any]) -> None:
    assert save(root, application_id=unchanged_app, settings=settings).status == 400


@pytest.mark.parametrize("wrong", [None, "010", 2**31])
def test_application_id_has_one_spelling(root: ApiUser, wrong: object) -> None:
    assert get(root, wrong).status == 400
    assert save(root, application_id=wrong, name="x").status == 400
    assert root.call("meta/schema", action="get", application_id=wrong).status == 400


def test_application_without_rights_and_missing_application_get_the_same_response(
    studio: Studio, root: ApiUser
) -> None:
    stranger, app = studio.user(), studio.application(studio.project())
    for action in ("get", "save", "delete"):
        responses = {
            str(stranger.call("application", action=action, data={"application_id": identifier, "name": "x"}))
            for identifier in (app, 2**31 - 1)
        }
        assert len(responses) == 1
    assert get(root, 2**31 - 1).status == 404
    assert get(root, 2**31 - 1).body == {"status": "ERROR", "error": "application not found"}


def test_moving_an_application_requires_rights_in_both_projects(studio: Studio, root: ApiUser) -> None:
    source, destination = studio.project(), studio.project()
    app = studio.application(source)
    thief, saver, both = studio.users(3)
    studio.join(destination, thief, project=["developer"])
    studio.join(destination, saver, project=["developer"])
    studio.give_secret(saver, app, "canSave")
    assert save(thief, application_id=app, project_id=destination).status == 403
    assert save(saver, application_id=app, project_id=destination).status == 403
    assert save(saver, application_id=app, project_id=None).status == 403
    assert save(thief, name="new", project_id=source).status == 403
    for project in (source, destination):
        studio.join(project, both, project=["developer"])
    assert save(both, application_id=app, project_id=destination).data["project_id"] == destination


def test_move_removes_the_application_from_the_settings_and_membership_of_its_project(
    studio: Studio, root: ApiUser
) -> None:
    source, destination = studio.project(), studio.project()
    app, ann = studio.application(source), studio.user()
    group = studio.group(source, ann.user_id)
    studio.role(app, "player", "play")
    studio.join(source, ann, applications={str(app): ["viewer"]})
    services = {str(app): {"groups": [{"group_id": group, "role": "player", "action": "grant"}]}}
    assert root.call("project", action="save", data={"id": source, "settings": {"services": services}}).status == 200
    assert studio.rules_of(ann, app) == ["play"]
    save(root, application_id=app, project_id=destination)
    save(root, application_id=app, project_id=source)
    assert studio.rules_of(ann, app) == []
    assert get(ann, app).status == 403
    for path in ("project", "project/membership"):
        kept = root.call(path, action="get", data={"id": source}).data
        assert root.call(path, action="save", data=kept).data == kept


def test_application_names_are_unique_within_a_project(studio: Studio, root: ApiUser) -> None:
    project, other = studio.project(), studio.project()
    first = save(root, name="Same", project_id=project).data["application_id"]
    again = save(root, name="Same", project_id=project)
    assert (again.status, again.body["status"]) == (409, "ERROR")
    assert save(root, name="Same", project_id=other).status == 200
    assert save(root, name="Same").status == save(root, name="Same").status == 200
    lone = save(root, name="Same").data["application_id"]
    assert save(root, application_id=lone, project_id=project).status == 409
    assert root.call("application", action="delete", data={"application_id": first}).status == 200
    assert save(root, name="Same", project_id=project).status == 200


def test_central_application_cannot_be_removed_or_moved(root: ApiUser, studio: Studio) -> None:
    assert root.call("application", action="delete", data={"application_id": 1}).status == 409
    assert save(root, application_id=1, project_id=studio.project()).status == 409
    assert get(root, 1).data["removed"] is False


def test_application_in_a_missing_or_removed_project_is_rejected(studio: Studio, root: ApiUser) -> None:
    assert save(root, name="x", project_id="no_such_project").status == 400
    assert save(root, name="x", project_id=studio.removed_project()).status == 403


def test_removed_application_can_only_be_read(studio: Studio, root: ApiUser) -> None:
    app, ann = studio.application(), studio.user()
    secret = root.call("accessKey", action="save", application_id=app, data={}).data["hash"]
    reader = studio.user()
    studio.give_secret(reader, app, "canRead")
    assert root.call("application", action="delete", data={"application_id": app}).status == 200
    calls: list[tuple[str, dict[str, Any]]] = [
        ("application", {"action": "save", "data": {"application_id": app, "name": "x"}}),
        ("application", {"action": "delete", "data": {"application_id": app}}),
        ("application/tags", {"data": {"tags": []}}),
        ("roles", {"action": "get", "data": {}}),
        ("roles", {"action": "save", "data": {"name": "x"}}),
        ("meta/schema", {"action": "get"}),
        ("meta/schema", {"action": "save", "data": {}}),
        ("meta/data", {"action": "get", "data": {}}),
        ("meta/data", {"action": "save", "data": {"user_id": ann.user_id, "roles": []}}),
        ("accessKey", {"action": "get"}),
        ("accessKey", {"action": "save", "data": {}}),
    ]
    for path, body in calls:
        response = root.call(path, application_id=app, **body)
        assert (response.status, response.body) == (403, {"status": "ERROR", "error": "removed"}), path
    body = {"action": "get", "application_id": app, "data": {"type": "roles", "user_id": ann.user_id}}
    assert root.call("meta/data", {"Authorization": f"Bearer {secret}"}, **body).status == 401
    assert get(root, app).data["removed"] is get(reader, app).data["removed"] is True


def test_settings_are_merged_per_key(studio: Studio, root: ApiUser) -> None:
    app = studio.application()
    gdpr = {"char_sources": ["https://a.example.com"]}
    save(root, application_id=app, settings={"gdpr": gdpr})
    save(root, application_id=app, settings={"restricted_domains": ["example.com"]})
    assert get(root, app, full=True).data["settings"] == {"gdpr": gdpr, "restricted_domains": ["example.com"]}
    save(root, application_id=app, settings={"restricted_domains": []})
    assert get(root, app, full=True).data["settings"] == {"gdpr": gdpr, "restricted_domains": []}
