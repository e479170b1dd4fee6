"""Assertions: statements about an application that no save may break, unless it overrides them."""

from typing import Any

import pytest
import trio

from sso.db.connection_share import ConnectionShare
from sso.db.errors import Unavailable
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import PermissionWriter, WriteMode
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.facts import StoredFacts
from sso.services import Services
from tests.admin.conftest import Administrator, administrator, root
from tests.kit.permission_changes import CHAT, People, app, chat, put, role, trial
from tests.perm.changes.conftest import Trial, dump
from tests.perm.endpoints.conftest import ApiUser, Studio

__all__ = ["app", "root", "trial"]

ANN, BOB = "ann@changes.example", "bob@changes.example"


def save_roles(trial: Trial, user: ApiUser, *roles: str, **more: Any) -> Any:
    data = {"user_id": user.user_id, "roles": list(roles)}
    app = trial.applications[0]
    return trial.studio.root.call("meta/data", action="save", application_id=app, data=data, **more)


def test_assertions_are_saved_and_read(root: Administrator, trial: Trial, app: int) -> None:
    path = f"/applications/{app}/assertions"
    assert root.data(path) == {"application_id": app, "assertions": []}
    tag = root.get(path).headers["ETag"]
    statements = [f"{ANN} may chat.kick", f"{BOB} may not chat.kick", "only staff may chat.kick"]
    response = put(root, app, *statements)
    assert (response.status_code, response.json()["data"]["assertions"]) == (200, statements)
    assert root.get(path).headers["ETag"] == response.headers["ETag"] != tag
    stale = root.request("PUT", path, {"If-Match": tag}, json={"assertions": []})
    assert stale.status_code == 412
    assert root.data(path)["assertions"] == statements
    entries = root.data("/audit")
    assert entries[0]["operation"] == "assertions.save"
    assert entries[0]["after"] == {"assertions": statements}


def test_malformed_assertion_is_refused_by_name(root: Administrator, app: int) -> None:
    malformed: tuple[Any, ...] = (
        *("", "ann", "ann can chat.kick", "ann may", "ann may not", "only may", "only staff may", "ann may chat kick"),
        7,
    )
    for statement in malformed:
        response = put(root, app, "x@y.example may not chat.kick", statement)
        assert response.status_code == 400, statement
        assert response.json()["error"].startswith("assertions"), statement
    assert root.data(f"/applications/{app}/assertions")["assertions"] == []


def test_assertion_that_fails_now_is_refused_unless_overridden(root: Administrator, trial: Trial, app: int) -> None:
    response = put(root, app, f"{BOB} may chat.kick")
    assert response.status_code == 409
    assert f"'{BOB} may chat.kick' would fail: {BOB} may not" in response.json()["error"]
    unknown = put(root, app, "nobody@changes.example may chat.kick")
    assert "there is no user nobody@changes.example" in unknown.json()["error"]
    assert put(root, app, f"{BOB} may chat.kick", override=True).status_code == 200
    assert root.data("/audit")[0]["operation"] == "assertions.override"


def test_misspelled_rules_and_roles_are_warnings(root: Administrator, trial: Trial, app: int) -> None:
    response = put(root, app, "only staf may chat.kik")
    assert response.json()["warnings"] == [
        "'only staf may chat.kik': there is no role staf",
        "'only staf may chat.kik': neither the schema nor a role has the rule chat.kik",
    ]


def test_saves_that_break_an_assertion_are_refused(
    studio: Studio, root: Administrator, trial: Trial, people: People, app: int
) -> None:
    ann, bob, *_ = people
    statements = (f"{ANN} may chat.kick", f"{BOB} may not private_data.chat.mute", "only staff may chat.kick")
    assert put(root, app, *statements).status_code == 200
    before = dump(studio)
    refused = {
        "taken": save_roles(trial, ann, "helper"),
        "given": save_roles(trial, bob, "helper"),
        "own": studio.root.call(
            "meta/data", action="save", application_id=app, data={"user_id": bob.user_id, **chat(kick=True)}
        ),
        "role": studio.root.call("roles", **role(trial, "staff", meta=chat(mute=True))),
        "removed": studio.root.call("roles", action="delete", application_id=app, data={"name": "staff"}),
        "condition": studio.root.call("roles", **role(trial, "helper", condition={"uid": [bob.user_id]})),
        "everyone": studio.root.call(
            "meta/schema", action="save", application_id=app, data=chat(kick=True, mute=False, ban=False)
        ),
    }
    assert {name: response.status for name, response in refused.items()} == dict.fromkeys(refused, 409)
    assert dump(studio) == before
    assert f"'{ANN} may chat.kick' would fail: {ANN} may not" in refused["taken"].body["error"]
    assert refused["own"].body["failed_assertions"] == [
        {
            "application_id": app,
            "assertion": "only staff may chat.kick",
            "reason": f"{BOB} may without the role staff",
            "users": [bob.user_id],
        }
    ]
    assert save_roles(trial, people[2], "helper").status == 200  # no assertion is about this user


def test_override_saves_and_is_audited(root: Administrator, trial: Trial, people: People, app: int) -> None:
    assert put(root, app, f"{ANN} may chat.kick").status_code == 200
    dry = save_roles(trial, people[0], options={"dry_run": True}).body
    assert [item["assertion"] for item in dry["failed_assertions"]] == [f"{ANN} may chat.kick"]
    assert save_roles(trial, people[0]).status == 409
    assert save_roles(trial, people[0], override="yes").status == 400
    assert save_roles(trial, people[0], override=True).status == 200
    entry = next(item for item in root.data("/audit") if item["operation"] == "assertions.override")
    assert entry["user_id"] == root.user_id
    assert entry["after"] == {"assertion": f"{ANN} may chat.kick", "reason": f"{ANN} may not"}
    assert save_roles(trial, people[0], "staff").status == 200
    assert save_roles(trial, people[0], options={"override": True}).status == 200


def test_assertion_is_overridden_only_by_those_who_may_change_it(
    studio: Studio, root: Administrator, trial: Trial, app: int
) -> None:
    """Otherwise a statement such as "only staff may chat.ban" would not bind those whom it is about."""
    zoe = studio.user(login="zoe@changes.example", tags=["sailor"])
    body = role(trial, "sailor", meta=chat(ban=True), condition={"tag": "sailor"})
    assert studio.root.call("roles", **body).status == 200
    assert put(root, app, "zoe@changes.example may chat.ban").status_code == 200
    path, change = f"/users/{zoe.user_id}", {"tags": [], "override": True}
    manager = administrator(studio, "can_manage_users")
    refused = manager.request("PATCH", path, json=change)
    assert (refused.status_code, "can_manage_applications is required" in refused.text) == (403, True)
    assert root.data(path)["tags"] == ["sailor"]
    assert manager.request("PATCH", path, json={"nick": "Zoe", "override": True}).status_code == 200  # nothing fails
    both = administrator(studio, "can_manage_users", "can_manage_applications")
    assert both.request("PATCH", path, json=change).status_code == 200


def test_member_of_the_application_cannot_override_its_assertions(
    studio: Studio, root: Administrator, trial: Trial, people: People, app: int
) -> None:
    writer = studio.user()
    rights = {"secret_data": {"meta": {"roles": {"canRead": {"value": "all"}, "canWrite": {"value": "all"}}}}}
    data = {"user_id": writer.user_id, **rights}
    assert studio.root.call("meta/data", action="save", application_id=app, data=data).status == 200
    assert put(root, app, f"{ANN} may chat.kick").status_code == 200
    body = {"action": "save", "application_id": app, "data": {"user_id": people[0].user_id, "roles": []}}
    assert writer.call("meta/data", **body).status == 409
    refused = writer.call("meta/data", **body, override=True)
    assert (refused.status, "can_manage_applications is required" in str(refused.body)) == (403, True)
    assert studio.root.call("meta/data", **body, override=True).status == 200


def test_attributes_of_users_are_checked(studio: Studio, root: Administrator, trial: Trial, app: int) -> None:
    eve = studio.user(login="eve@changes.example", tags=["deckhand"])
    condition = {"tag": "deckhand"}
    body = role(trial, "crew", meta=chat(ban=True), condition=condition)
    assert studio.root.call("roles", **body).status == 200
    assert put(root, app, "eve@changes.example may chat.ban").status_code == 200
    path = f"/users/{eve.user_id}"
    refused = root.request("PATCH", path, json={"tags": []})
    assert (refused.status_code, "eve@changes.example may chat.ban" in refused.text) == (409, True)
    dry = root.request("PATCH", path, json={"tags": []}, params={"dry_run": "1"}).json()
    assert dry["users"] == [
        {"user_id": eve.user_id, "application_id": app, "gained": [], "lost": ["private_data.chat.ban"]}
    ]
    assert root.data(path)["tags"] == ["deckhand"]
    assert root.request("PATCH", path, json={"nick": "Eve"}).status_code == 200
    assert root.request("PATCH", path, json={"tags": [], "override": True}).status_code == 200
    assert root.data(path)["tags"] == []


def test_assertions_in_a_project(studio: Studio, root: Administrator, people: People) -> None:
    ann, bob, _, dan = people
    project = studio.project(dan)
    app = studio.application(project, **CHAT)
    trial = Trial(studio, people, (app,))
    assert studio.root.call("roles", **role(trial, "staff", meta=chat(kick=True))).status == 200
    group = studio.group(project, ann.user_id)
    services = {str(app): {"groups": [{"group_id": group, "role": "staff", "action": "grant"}]}}
    granted = studio.root.call("project", action="save", data={"id": project, "settings": {"services": services}})
    assert granted.status == 200
    assert (
        put(root, app, f"{ANN} may chat.kick in {project}", f"only staff may chat.kick in {project}").status_code == 200
    )
    assert put(root, app, f"{ANN} may chat.kick in other_project").status_code == 409
    assert studio.root.call("group/access", group_id=group, data={"users": [bob.user_id]}).status == 409
    assert studio.root.call("group", action="delete", group_id=group).status == 409
    moved = studio.root.call("application", action="save", data={"application_id": app, "project_id": studio.project()})
    assert moved.status == 409
    assert studio.root.call("application", action="delete", data={"application_id": app}).status == 200


def test_assertions_about_project_rules_of_the_central_application(
    studio: Studio, root: Administrator, people: People
) -> None:
    dan = people[3]
    project = studio.project(dan)
    rule = "project.can_remove_project"
    statements = (f"dan@changes.example may {rule} in {project}", f"only admin may {rule} in {project}")
    assert put(root, 1, *statements).status_code == 200
    try:
        members = [{"user_id": dan.user_id, "roles": {"project": ["viewer"]}}]
        members.append({"user_id": studio.keeper.user_id, "roles": {"project": ["admin"]}})
        response = studio.root.call("project/membership", action="save", data={"id": project, "users": members})
        assert response.status == 409
        assert f"'{statements[0]}' would fail" in response.body["error"]
    finally:
        assert put(root, 1).status_code == 200


def test_rights_of_assertions(studio: Studio, root: Administrator, trial: Trial, app: int) -> None:
    path = f"/applications/{app}/assertions"
    viewer = administrator(studio, "can_view_applications")
    manager = administrator(studio, "can_manage_applications")
    assert viewer.get(path).status_code == 200
    assert put(viewer, app).status_code == 403
    assert put(manager, app, "only staff may chat.kick").status_code == 200
    assert put(manager, 1, "only root may can_manage_users").status_code == 403
    assert root.get("/applications/1/assertions").status_code == 200
    for caller in (viewer, manager):
        refused = caller.get("/applications/1/assertions")
        assert (refused.status_code, refused.json()["error"]) == (
            403,
            "the role root is required at the central application",
        )
    assert administrator(studio).get(path).status_code == 403
    assert root.get("/applications/999999/assertions").status_code == 404
    assert root.get("/applications/x/assertions").status_code == 404


def test_only_callers_who_may_see_users_learn_who_violates_an_assertion(
    studio: Studio, root: Administrator, trial: Trial, app: int
) -> None:
    statements = ("only nobody may chat.kick", "nobody@nowhere.example may chat.kick")
    stranger = administrator(studio, "can_manage_applications")
    path = f"/applications/{app}/assertions"
    for query in ("", "?dry_run=1"):
        body = {"assertions": list(statements)}
        for caller, sees in ((root, True), (stranger, False)):
            response = caller.request("PUT", path + query, json=body)
            assert response.status_code == (200 if query else 409)
            assert (ANN in response.text) is sees
            assert ("there is no user" in response.text) is sees
            assert [item["assertion"] for item in response.json()["failed_assertions"]] == [*reversed(statements)]


async def test_dry_runs_that_evaluate_many_users_run_one_at_a_time(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their shared locks would keep writers of the central application waiting if they overlapped."""
    writer = PermissionWriter(services.database, StoredFacts(services.database))
    running, most = 0, 0

    async def work(tx: Transaction) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await tx.value(Statement("SELECT pg_sleep(0.05)"))
        running -= 1

    async def dry_run() -> None:
        await writer.write(WriteMode(dry_run=True), Scope.application(CENTRAL_APPLICATION_ID), work)

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(dry_run)
    assert most == 1
    monkeypatch.setattr(services.database.shares, "evaluation", ConnectionShare(1, max_wait_s=0.01))
    async with services.database.shares.evaluation.turn(("another",)):
        with pytest.raises(Unavailable):
            await dry_run()
