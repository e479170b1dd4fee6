"""Readers of the audit trail see only the sections that they may read at the other endpoints."""

from typing import Any

import pytest

from tests.kit.permission_calls import audit
from tests.perm.endpoints.conftest import ApiUser, Studio

WORD = "classified"


@pytest.fixture
def manager(studio: Studio) -> ApiUser:
    return studio.user()


@pytest.fixture
def project(studio: Studio, manager: ApiUser) -> str:
    project = studio.project()
    studio.join(project, manager, project=["manager"])
    return project


def entries(user: ApiUser, project: str, operation: str) -> Any:
    return audit(user, project_id=project, operation=operation, most=200).data


def test_manager_does_not_read_private_and_secret_data_of_users(studio: Studio, manager: ApiUser, project: str) -> None:
    app, ann = studio.application(project), studio.user()
    private, secret = {WORD: {"value": True}}, {"application": {"canSave": {"value": True}}}
    public = {"hello": {"value": True}}
    studio.save_data(ann, app, private_data=private, public_data=public, secret_data=secret, roles=[])
    data = {"user_id": ann.user_id, "type": "tree"}
    refused = manager.call("meta/data", action="get", application_id=app, data=data)
    assert WORD not in str(refused.body)
    (entry,) = entries(manager, project, "permissions.save")
    assert WORD not in str(entry)
    assert "canSave" not in str(entry)
    assert entry["after"] == {"public_data": public}
    assert entry["hidden"] == ["login", "private_data", "roles", "secret_data"]
    assert (entry["user_id"], entry["target"]) == (studio.root.user_id, f"{app}/{ann.user_id}")
    (whole,) = entries(studio.root, project, "permissions.save")
    assert (whole["after"]["private_data"], "hidden" in whole) == (private, False)


def test_manager_reads_sections_that_the_application_lets_it_read(
    studio: Studio, manager: ApiUser, project: str
) -> None:
    app, ann = studio.application(project), studio.user()
    studio.give_secret(manager, app, private={"canRead": "all"})
    studio.save_data(ann, app, private_data={WORD: {"value": True}}, secret_data={"x": {"value": 1}})
    entry = next(e for e in entries(manager, project, "permissions.save") if e["target"].endswith(ann.user_id))
    assert entry["after"]["private_data"] == {WORD: {"value": True}}
    assert entry["hidden"] == ["login", "roles", "secret_data"]


def test_changes_of_the_readers_own_record_are_shown_whole(studio: Studio, manager: ApiUser, project: str) -> None:
    app = studio.application(project)
    studio.save_data(manager, app, private_data={WORD: {"value": True}})
    (entry,) = entries(manager, project, "permissions.save")
    assert WORD in str(entry["after"])


def test_schema_is_shown_to_readers_of_the_schema_only(studio: Studio, manager: ApiUser, project: str) -> None:
    app = studio.application(project, private_data={WORD: {"value": True}})
    (entry,) = entries(manager, project, "schema.save")
    assert (entry["before"], entry["after"], entry["hidden"]) == (None, None, ["after", "before"])
    studio.give_secret(manager, app, "canReadSchema")
    (entry,) = entries(manager, project, "schema.save")
    assert WORD in str(entry["after"])


def test_administrator_without_rights_on_applications_does_not_read_their_settings(
    studio: Studio, project: str
) -> None:
    name = f"steward{project}"
    meta = {"private_data": {"project": {"can_view_project": {"value": True}, "can_manage_project": {"value": True}}}}
    assert studio.root.call("roles", action="save", application_id=1, data={"name": name, "meta": meta}).status == 200
    steward = studio.user()
    studio.join(project, steward, project=[name])
    app = studio.application(project)
    settings = {"restricted_domains": [f"{WORD}.example"]}
    studio.root.call("application", action="save", data={"application_id": app, "settings": settings})
    studio.root.call("accessKey", action="save", application_id=app, data={"comment": WORD})
    studio.role(app, WORD, "x")
    visible = [
        entry
        for operation in ("application.save", "access_key.create", "role.save")
        for entry in entries(steward, project, operation)
    ]
    assert len(visible) == 3
    assert not [entry for entry in visible if WORD in str([entry["before"], entry["after"]])]
    assert visible[0]["hidden"] == ["service_meta", "settings"]
    assert visible[0]["after"]["application_id"] == app
