"""The audit trail: its entries, its filters, and the callers who may read it."""

import time

import pytest
import trio

from sso.config import load
from sso.db.cleanup import delete_expired
from sso.db.statement import Statement
from sso.services import open_services
from tests.kit.permission_calls import audit
from tests.perm.endpoints.conftest import Studio
from tests.perm.endpoints.tokens import ServiceKey


def test_audit_entry_has_actor_operation_target_time_and_address(studio: Studio) -> None:
    project = studio.project()
    studio.root.call("project", action="save", data={"id": project, "description": "new"})
    entry = audit(studio.root, project_id=project, most=1).data[0]
    assert set(entry) == {
        "id", "at", "user_id", "service_id", "client_id", "key_id", "operator", "address", "operation", "target",
        "project_id", "application_id", "before", "after",
    }  # fmt: skip
    assert (entry["user_id"], entry["address"], entry["service_id"]) == (studio.root.user_id, "127.0.0.1", None)
    assert (entry["operation"], entry["target"], entry["project_id"]) == ("project.save", project, project)
    assert (entry["before"]["description"], entry["after"]["description"]) == ("", "new")
    assert entry["at"].endswith("Z")


def test_every_change_writes_an_entry_and_a_refused_request_writes_none(studio: Studio) -> None:
    ann = studio.user()
    project = studio.project()
    app, group = studio.application(project), studio.group(project, "7", tags=("project",))
    studio.role(app, "guard", "patrol")
    studio.save_data(ann, app, roles=["guard"])
    root = studio.root
    key = root.call("accessKey", action="save", application_id=app, data={"comment": "x"}).data
    root.call("accessKey", action="delete", application_id=app, data={"id": key["id"]})
    root.call("meta/schema", action="save", application_id=app, data={"public_data": {"a": {"value": 1}}})
    root.call("roles", action="delete", application_id=app, data={"name": "guard"})
    root.call("application", action="save", data={"application_id": app, "service_meta": {"private_key": "SECRET"}})
    root.call("application", action="delete", data={"application_id": app})
    root.call("group", action="save", group_id=group, data={"title": "New"})
    root.call("group", action="delete", group_id=group, data={})
    assert ann.call("project", action="save", data={"id": project, "description": "no"}).status == 403
    assert root.call("project", action="save", data={"id": project, "aliases": ["game"]}).status == 400
    entries = audit(root, project_id=project, most=200)
    assert sorted({entry["operation"] for entry in entries.data}) == [
        "access_key.create",
        "access_key.delete",
        "application.create",
        "application.delete",
        "application.save",
        "group.access",
        "group.create",
        "group.delete",
        "group.save",
        "group.tags",
        "membership.save",
        "permissions.cascade",
        "permissions.save",
        "project.publish",
        "role.delete",
        "role.save",
        "schema.save",
    ]
    assert key["hash"] not in str(entries.body)
    assert "SECRET" not in str(entries.body)
    assert audit(root, project_id=project, operation="project.save").data == []


def test_save_without_changes_writes_no_entry(studio: Studio) -> None:
    project = studio.project()
    count = len(audit(studio.root, project_id=project).data)
    studio.root.call(
        "project", action="save", data=studio.root.call("project", action="get", data={"id": project}).data
    )
    assert len(audit(studio.root, project_id=project).data) == count


def test_audit_filters_combine_and_pages_continue(studio: Studio) -> None:
    project, other = studio.project(), studio.project()
    for number in range(5):
        studio.root.call("project", action="save", data={"id": project, "description": str(number)})
    saves = audit(studio.root, project_id=project, operation="project.save").data
    assert [entry["after"]["description"] for entry in saves] == ["4", "3", "2", "1", "0"]
    seen, page = [], audit(studio.root, project_id=project, operation="project.save", most=2)
    while True:
        seen += page.data
        if "next" not in page.body:
            break
        page = audit(studio.root, project_id=project, operation="project.save", most=2, before_id=page.body["next"])
    assert seen == saves
    assert audit(studio.root, project_id=project, target=other).data == []
    assert audit(studio.root, project_id=project, user_id="7").data == []
    assert audit(studio.root, project_id=project, until=int(time.time()) - 3600).data == []
    assert len(audit(studio.root, project_id=project, since=int(time.time()) - 3600).data) >= 5


@pytest.mark.parametrize("moment", [0, 1, 2**53 - 1])
def test_audit_filters_accept_every_timestamp(studio: Studio, moment: int) -> None:
    for name in ("since", "until", "before_id"):
        assert audit(studio.root, **{name: moment}).status == 200


def test_administrators_read_the_audit_trail_of_their_own_project_only(studio: Studio) -> None:
    ann = studio.user()
    project, other = studio.project(ann), studio.project()
    app, foreign = studio.application(project), studio.application(other)
    assert audit(ann, project_id=project).status == 200
    assert {entry["project_id"] for entry in audit(ann, application_id=app).data} == {project}
    for refused in ({}, {"project_id": other}, {"application_id": foreign}, {"application_id": 1}, {"user_id": "7"}):
        assert audit(ann, **refused).status == 403
    assert audit(ann, project_id=project, application_id=foreign).data == []
    viewer = studio.user()
    studio.join(project, viewer, project=["viewer"])
    assert audit(viewer, project_id=project).status == 403


def test_entries_from_before_a_move_are_hidden_from_the_new_project(studio: Studio) -> None:
    ann = studio.user()
    project, other = studio.project(ann), studio.project()
    app = studio.application(other, public_data={"internal": {"value": 1}})
    studio.root.call("application", action="save", data={"application_id": app, "project_id": project})
    entries = audit(ann, application_id=app).data
    assert [entry["operation"] for entry in entries] == ["application.save"]


def test_audit_entry_names_the_application_of_a_service_jwt(studio: Studio) -> None:
    app, ann = studio.application(), studio.user()
    token = ServiceKey().trusted_by(studio, app).sign(studio.server, app)
    data = {"user_id": ann.user_id, "public_data": {"a": {"value": 1}}}
    body = {"action": "save", "application_id": app, "data": data}
    assert ann.call("meta/data", {"Service-Jwt": token}, **body).status == 200
    (entry,) = audit(studio.root, application_id=app, operation="permissions.save").data
    assert (entry["user_id"], entry["service_id"], entry["target"]) == (ann.user_id, app, f"{app}/{ann.user_id}")


@pytest.mark.parametrize("most", [0, -1, 201, "5", 1.5, True, None])
def test_audit_page_has_1_to_200_entries(studio: Studio, most: object) -> None:
    assert audit(studio.root, most=most).status == 400


def test_rules_with_names_like_secrets_are_not_redacted(studio: Studio) -> None:
    rules = {name: {"value": True} for name in ("secret", "hash", "password", "private_key")}
    app = studio.application(private_data=rules)
    (entry,) = audit(studio.root, application_id=app, operation="schema.save").data
    assert entry["after"]["private_data"] == rules


def test_large_values_in_audit_entries_are_truncated_with_a_marker(studio: Studio) -> None:
    rules = {f"rule{at}": {"value": True, "description": "x" * 1000} for at in range(200)}
    app = studio.application(private_data=rules, public_data={"small": {"value": 1}})
    (entry,) = audit(studio.root, application_id=app, operation="schema.save").data
    assert entry["after"]["private_data"]["truncated"] is True
    assert entry["after"]["private_data"]["bytes"] > 200_000
    assert entry["after"]["public_data"] == {"small": {"value": 1}}


def test_entries_older_than_the_retention_are_deleted_in_batches(studio: Studio) -> None:
    """There are more entries than one batch deletes. Newer entries stay."""
    statement = """INSERT INTO audit (id, at, operation, target) OVERRIDING SYSTEM VALUE
        SELECT -n, now() - make_interval(days => 10, hours => n), 'test.old', 'retention'
        FROM generate_series(1, 2500) n"""

    async def run() -> tuple[int, int, int]:
        async with open_services(load(None, studio.server.settings), studio.dsn) as services:
            await services.database.value(Statement(statement))
            left = Statement("SELECT count(*) FROM audit WHERE target = 'retention'")
            for days in (0, 400):
                await delete_expired(services.database, days)
                assert await services.database.value(left) == 2500
            deleted = await delete_expired(services.database, 9)
            young: int = await services.database.value(Statement("SELECT count(*) FROM audit"))
            return deleted, await services.database.value(left), young

    deleted, left, young = trio.run(run)
    assert deleted >= 2500
    assert left == 0
    assert young > 0
