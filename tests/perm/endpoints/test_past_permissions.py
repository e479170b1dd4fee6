"""``options.at``: permissions and reasons at a past moment, at meta/data, the management API and the command line."""

import json
from typing import Any

import pytest

from tests.kit.browser import query
from tests.kit.permission_calls import get
from tests.kit.server import Server
from tests.kit.timeline import Timeline
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey


@pytest.fixture
def timeline(server: Server) -> Timeline:
    return Timeline(server)


def saved(user: ApiUser, path: str, /, **body: Any) -> Any:
    response = user.call(path, **body)
    assert response.status == 200, response.body
    return response.body.get("data")


def test_roles_own_data_and_schema(studio: Studio, timeline: Timeline) -> None:
    app = studio.application(private_data={"chat": {"value": True}})
    ann = studio.user()
    studio.role(app, "guard", "patrol")
    before = timeline.mark()
    studio.save_data(ann, app, roles=["guard"], private_data={"own": {"value": True, "params": "1"}})
    assigned = timeline.mark()
    studio.role(app, "guard", "patrol", "arrest", params="north")
    changed = timeline.mark()
    studio.save_data(ann, app, roles=[], private_data={})
    schema = {"private_data": {"chat": {"value": False}, "mail": {"value": True}}}
    saved(studio.root, "meta/schema", action="save", application_id=app, data=schema)
    after = timeline.mark()
    saved(studio.root, "roles", action="delete", application_id=app, data={"name": "guard"})

    def rules(moment: int) -> Any:
        return get(ann, app, {"at": timeline.at(moment)}, type="list_short").data

    assert rules(before) == ["chat"]
    assert rules(assigned) == ["chat", "own|1", "patrol"]
    assert rules(changed) == ["arrest|north", "chat", "own|1", "patrol|north"]
    assert rules(after) == ["mail"]
    at = {"at": timeline.at(assigned)}
    assert get(ann, app, at, type="roles").data == ["guard"]
    assert get(ann, app, at, type="list").data == ["private_data.chat", "private_data.own|1", "private_data.patrol"]
    tree = get(ann, app, at, type="tree").data
    assert tree["private_data"]["own"] == {"value": True, "params": "1"}
    assert tree["roles"] == ["guard"]
    why = get(ann, app, at | {"explain": "patrol"}).body["explain"]
    assert [source["role"] for source in why["sources"]] == ["guard"]
    why = get(ann, app, {"at": timeline.at(after), "explain": "patrol"}).body["explain"]
    assert why["held"] is False


def test_attributes_of_the_user_decide_conditions(studio: Studio, timeline: Timeline) -> None:
    app = studio.application()
    ann = studio.user(tags=["vip"])
    studio.role(app, "lounge", "enter", condition={"tag": "vip"})
    studio.role(app, "staff", "work", condition={"domain": "example.com"})
    before = timeline.mark()
    studio.server.apply({"users": [{"login": ann.login, "tags": []}]})
    middle = timeline.mark()
    login = f"moved{ann.user_id}@elsewhere.example"
    studio.server.apply({"users": [{"user_id": ann.user_id, "login": login, "tags": ["vip"]}]})

    def rules(**options: Any) -> Any:
        return get(ann, app, options, type="list_short").data

    assert rules(at=timeline.at(before)) == ["enter", "work"]
    assert rules(at=timeline.at(middle)) == ["work"]
    assert rules() == ["enter"]


def test_projects_groups_and_memberships(studio: Studio, timeline: Timeline) -> None:
    ann, project_id = studio.user(), studio.project()
    app = studio.application(project_id, private_data={"chat": {"value": False}})
    studio.role(app, "guard", "patrol")
    group = studio.group(project_id, ann.user_id)
    services = {str(app): {"groups": [{"group_id": group, "role": "guard", "action": "grant"}]}}
    saved(studio.root, "project", action="save", data={"id": project_id, "settings": {"services": services}})
    studio.join(project_id, ann, project=["viewer"], applications={str(app): ["admin"]})
    granted = timeline.mark()
    saved(studio.root, "group/access", group_id=group, data={"users": []})
    studio.join(project_id, ann, project=["viewer"])
    left_group = timeline.mark()
    saved(studio.root, "group", action="delete", group_id=group)
    saved(studio.root, "application", action="save", data={"application_id": app, "project_id": None})
    moved = timeline.mark()
    saved(studio.root, "project", action="delete", data={"id": project_id})

    def rules(moment: int, application_id: int) -> Any:
        return get(ann, application_id, {"at": timeline.at(moment)}, type="list_short").data

    def places(moment: int) -> set[str]:
        return {rule.rpartition("/")[0] for rule in rules(moment, 1) if rule.startswith(project_id)}

    assert rules(granted, app) == ["patrol"]
    manage = f"{project_id}/applications/{app}/app.can_manage_app_api_keys"
    assert manage in rules(granted, 1)
    assert manage not in rules(left_group, 1)
    assert rules(left_group, app) == []
    assert rules(moved, app) == []
    at_group = f"{project_id}/groups/{group}"
    assert places(granted) - {at_group} == {project_id, f"{project_id}/applications/{app}"}
    assert places(moved) == {project_id}
    assert not any(rule.startswith(project_id) for rule in get(ann, 1, type="list_short").data)
    data = get(ann, 1, {"at": timeline.at(granted), "with_apps_data": True}).data
    assert [item["id"] for item in data["apps"][project_id]] == [app]


def test_present_second_is_the_present_answer(studio: Studio, timeline: Timeline) -> None:
    app = studio.application()
    ann = studio.user()
    studio.role(app, "guard", "patrol")
    for roles in (["guard"], [], ["guard"]):
        studio.save_data(ann, app, roles=roles)
        assert get(ann, app, {"at": timeline.now()}, type="roles").data == roles


def test_expirations_are_judged_at_the_moment(studio: Studio, timeline: Timeline) -> None:
    app = studio.application()
    ann = studio.user()
    studio.role(app, "guard", "patrol")
    now = timeline.now()
    studio.save_data(ann, app, roles=[{"name": "guard", "expired": now + 3600}])
    moment = timeline.mark()
    query(studio.server, "UPDATE permission_commits SET at = at - interval '2 hours'")
    query(studio.server, "UPDATE permission_history SET since = since - interval '2 hours'")
    at = timeline.at(moment) - 7200
    response = get(ann, app, {"at": at, "with_exp": True}, type="list_short")
    assert response.data == [f"patrol:{now + 3600 - at}"]
    assert response.body["expired"] == now + 3600


def test_moment_before_the_user_or_application_existed_is_404(studio: Studio, timeline: Timeline) -> None:
    old_app, old_user = studio.application(), studio.user()
    before = timeline.mark()
    new_app, new_user = studio.application(), studio.user()
    at = {"at": timeline.at(before)}
    assert get(old_user, old_app, at).status == 200
    for user, application_id, what in ((old_user, new_app, "application"), (new_user, old_app, "user")):
        response = get(user, application_id, at)
        assert (response.status, response.body["error"]) == (404, f"the {what} did not exist at that time")


def test_removed_application_has_its_past(studio: Studio, timeline: Timeline) -> None:
    app, ann = studio.application(private_data={"chat": {"value": True}}), studio.user()
    before = timeline.mark()
    saved(studio.root, "application", action="delete", data={"application_id": app})
    after = timeline.mark()
    assert get(studio.root, app, {"at": timeline.at(before)}, user_id=ann.user_id).data == ["private_data.chat"]
    for options in ({"at": timeline.at(after)}, {}):
        assert get(studio.root, app, options, user_id=ann.user_id).body["error"] == "removed"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (True, "must be an integer"),
        ("1700000000", "must be an integer"),
        (1.5, "must be an integer"),
        (None, "must be an integer"),
        ([], "must be an integer"),
        (-1, "must not be negative"),
        (2**60, "must be at most 9007199254740991"),
        (2**53 - 1, "must not be in the future"),
        (32503680000, "must not be in the future"),
        (0, "the history begins at "),
    ],
)
def test_unusable_moments_are_400(ann: ApiUser, app: int, at: Any, expected: str) -> None:
    response = get(ann, app, {"at": at})
    assert response.status == 400, response.body
    assert f"options.at: {expected}" in response.body["error"]


def test_next_second_is_in_the_future(ann: ApiUser, app: int, timeline: Timeline) -> None:
    assert get(ann, app, {"at": timeline.now() + 60}).status == 400


def test_rights_of_today_decide(studio: Studio, timeline: Timeline) -> None:
    app, (ann, bob) = studio.application(), studio.users(2)
    studio.role(app, "guard", "patrol")
    studio.save_data(bob, app, roles=["guard"])
    studio.give_secret(ann, app, private={"canRead": "all"}, roles={"canRead": "all"})
    then = timeline.mark()
    at = {"at": timeline.at(then)}
    assert get(ann, app, at, user_id=bob.user_id, type="roles").data == ["guard"]
    studio.give_secret(ann, app)
    at = {"at": timeline.at(then)}
    assert get(ann, app, at, user_id=bob.user_id, type="roles").status == 403
    assert get(bob, app, at, type="roles").data == ["guard"]


def test_service_reads_past_roles(studio: Studio, timeline: Timeline) -> None:
    app, ann = studio.application(), studio.user()
    key = ServiceKey().trusted_by(studio, app)
    studio.role(app, "guard", "patrol")
    studio.save_data(ann, app, roles=["guard"])
    then = timeline.mark()
    studio.save_data(ann, app, roles=[])
    body: dict[str, Any] = {"action": "get", "application_id": app}
    body["data"] = {"user_id": ann.user_id, "type": "roles"}
    body["options"] = {"at": timeline.at(then)}
    body["service_jwt"] = key.sign(studio.server, app)
    assert studio.client.post("/api/permissions/meta/data", json=body).json()["data"] == ["guard"]


def test_management_api_and_command_line(studio: Studio, timeline: Timeline) -> None:
    app, ann = studio.application(), studio.user()
    studio.role(app, "guard", "patrol")
    studio.save_data(ann, app, roles=["guard"])
    then = timeline.mark()
    studio.save_data(ann, app, roles=[])
    headers = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR}
    path = f"/api/admin/users/{ann.user_id}/permissions"
    at = timeline.at(then)
    params: dict[str, Any] = {"application_id": app, "explain": "patrol"}
    past = studio.client.get(path, params=params | {"at": at}, headers=headers).json()
    assert (past["data"], past["explain"]["held"]) == (["private_data.patrol"], True)
    assert studio.client.get(path, params=params, headers=headers).json()["data"] == []
    for value, status in (("0", 400), ("x", 400), ("-1", 400), ("1e9", 400), (str(2**62), 400), (str(10**40), 400)):
        response = studio.client.get(path, params=params | {"at": value}, headers=headers)
        assert (response.status_code, response.json()["error"][:3]) == (status, "at:")
    arguments = ("perm", "explain", ann.login, "patrol", "--app", str(app), "--json")
    assert json.loads(studio.server.sso(*arguments, "--at", str(at)).stdout)["held"] is True
    failed = studio.server.sso("perm", "list", ann.login, "--app", str(app), "--at", "2001-01-01", check=False)
    assert (failed.returncode, "--at: the history begins at" in failed.stderr) == (1, True)


def test_past_in_another_project_is_for_root(studio: Studio, timeline: Timeline) -> None:
    ann, owner = studio.users(2)
    old, new = studio.project(), studio.project(owner)
    app = studio.application(old)
    studio.role(app, "guard", "patrol")
    group = studio.group(old, ann.user_id)
    services = {str(app): {"groups": [{"group_id": group, "role": "guard", "action": "grant"}]}}
    saved(studio.root, "project", action="save", data={"id": old, "settings": {"services": services}})
    studio.give_secret(owner, app, private={"canRead": "all"}, roles={"canRead": "all"})
    then = timeline.mark()
    saved(studio.root, "application", action="save", data={"application_id": app, "project_id": new})
    moved = timeline.mark()
    past, present = {"at": timeline.at(then)}, {"at": timeline.at(moved)}
    for options in (past, past | {"explain": True}, past | {"explain": "patrol"}):
        refused = get(owner, app, options, user_id=ann.user_id)
        assert (refused.status, refused.body.get("error")) == (403, "the application was in another project")
    assert get(owner, app, present | {"explain": "patrol"}, user_id=ann.user_id).status == 200
    assert get(ann, app, past, type="list_short").data == ["patrol"]
    assert get(studio.root, app, past | {"explain": "patrol"}, user_id=ann.user_id).body["explain"]["held"] is True
