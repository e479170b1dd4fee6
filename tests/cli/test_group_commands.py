"""The command group, with members, conditions, roles and access."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Sso, State
from tests.kit.server import Server
from tests.state.studio import ANN, BOB, TESTERS

APP = ("--app", "40")


@pytest.fixture(scope="module")
def environment(studio_service: Server) -> dict[str, str]:
    return studio_service.settings


def shown(sso: Sso, name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(sso("group", "show", name).out)
    return record


def test_group_add_list_show_change_and_delete(applied: Sso) -> None:
    [line] = applied("group", "add", "Scouts", "--project", "rd", "--description", "See more", "--tag", "a").lines
    group_id = line.removeprefix("group_id ")
    assert f"{group_id}\tScouts\tred_dawn\t0\t0\ta" in applied("group", "list", "--project", "rd").lines
    assert shown(applied, "scouts") == {
        "id": group_id,
        "project_id": "red_dawn",
        "title": "Scouts",
        "description": "See more",
        "tags": ["a"],
        "conditions": [],
        "users": [],
        "roles": [],
        "access": "none",
    }
    change = ("group", "change", "Scouts", "--title", "Rangers", "--tag", "project", "--remove-tag", "a")
    assert applied(*change).lines == ["group Rangers of the project red_dawn is changed"]
    record = shown(applied, group_id)
    assert (record["title"], record["description"], record["tags"]) == ("Rangers", "See more", ["project"])
    assert applied("group", "delete", "Rangers", "--yes").lines == ["group Rangers of the project red_dawn is deleted"]
    assert [line.split("\t")[0] for line in applied("group", "list").lines] == [TESTERS]


def test_groups_with_one_title_are_told_apart_by_project_or_id(applied: Sso) -> None:
    assert applied("project", "add", "Second").code == 0
    group_id = applied("group", "add", "Testers", "--project", "second").lines[0].split()[1]
    assert applied("group", "show", "Testers").failure == (
        f"GROUP: several groups have the title Testers: expected one of the ids {TESTERS} in red_dawn, "
        f"{group_id} in second"
    )
    assert json.loads(applied("group", "show", "Testers", "--project", "second").out)["id"] == group_id
    assert applied("group", "delete", group_id, "--yes").code == 0


def test_group_members_and_conditions_give_the_roles_of_the_group(applied: Sso) -> None:
    def rules(user: str) -> list[str]:
        return applied("perm", "list", user, *APP).lines

    for login in ("eve@example.com", "zoe@example.com"):
        assert applied("user", "add", login).code == 0
    assert applied("role", "add", "scout", *APP, "--rule", "map.reveal").code == 0
    assert applied("group", "add", "Scouts", "--project", "rd").code == 0
    assert applied("group", "access", "testers", "none").code == 0  # otherwise only testers have access
    assert applied("group", "role", "add", "Scouts", "scout", *APP).lines == [
        "group Scouts gives the role scout at application 40"
    ]
    assert "map.reveal" not in rules("eve@example.com")
    assert applied("group", "member", "add", "Scouts", "eve@example.com", BOB).lines == [
        f"added to group Scouts: eve@example.com, {BOB}"
    ]
    assert [line.split("\t")[1] for line in applied("group", "member", "list", "Scouts").lines] == [
        "eve@example.com",
        "bob@example.com",
    ]
    assert "map.reveal" in rules("eve@example.com")
    assert applied("group", "member", "delete", "Scouts", "eve@example.com").code == 0
    assert "map.reveal" not in rules("eve@example.com")
    condition = ("group", "condition", "add", "Scouts", "staff")
    assert applied(*condition, "domain=example.com", "tag=none").lines == ["group Scouts has the condition staff"]
    assert "map.reveal" not in rules("zoe@example.com")
    assert applied(*condition, '{"or": [{"domain": "example.com"}]}').code == 0
    assert shown(applied, "Scouts")["conditions"] == [
        {"title": "staff", "condition": {"or": [{"domain": "example.com"}]}}
    ]
    assert "map.reveal" in rules("zoe@example.com")
    assert applied("group", "role", "add", "Scouts", "scout", *APP, "--action", "revoke").lines == [
        "group Scouts takes away the role scout at application 40"
    ]
    assert shown(applied, "Scouts")["roles"] == [{"application_id": 40, "role": "scout", "action": "revoke"}]
    assert "map.reveal" not in rules("zoe@example.com")
    assert applied("group", "role", "delete", "Scouts", "scout", *APP).code == 0
    assert shown(applied, "Scouts")["roles"] == []
    assert applied("group", "condition", "delete", "Scouts", "staff").code == 0
    assert shown(applied, "Scouts")["conditions"] == []
    assert applied("group", "delete", "Scouts", "--yes").code == 0
    assert applied("role", "delete", "scout", *APP, "--yes").code == 0
    assert applied("group", "access", "testers", "allow").lines == [
        "access of group Testers to the project red_dawn: allow"
    ]


FAILURES: list[tuple[tuple[str, ...], str]] = [
    (("add", "a/b", "--project", "rd"), "TITLE: must be 1 to 32 Latin letters, digits, spaces or underscores"),
    (("add", "X", "--project", "none"), "there is no project none; `sso project list` shows them"),
    (("add", "X", "--project", "rd", "--tag", "a-b"),
     "--tag: must be 1 to 64 letters, digits, colons or underscores"),
    (("change", "none", "--title", "X"), "there is no group none; `sso group list` shows them"),
    (("change", "testers", "--remove-tag", "x"), "--remove-tag: the group has no tag x; it has: project"),
    (("change", "testers", "--remove-tag", "project"),
     "the group is in the allow or disallow list of its project: remove it from the list first"),
    (("delete", "testers", "--yes"),
     "the group is in the allow or disallow list of its project: remove it from the list first"),
    (("member", "add", "testers", BOB, "none"), "there is no user none"),
    (("member", "delete", "testers", BOB), f"USER: {BOB} was not added to the group Testers"),
    (("member", "delete", "testers", ANN), "the project would have no administrator with access to it"),
    (("condition", "add", "testers", "home", "ip=10.0.0.0/8"),
     "CONDITION: condition.ip: a group's condition must not ask for ip, only that of a role can"),
    (("condition", "add", "testers", "", "tag=a"), "TITLE: must not be empty"),
    (("condition", "delete", "testers", "x"), "TITLE: the group has no condition x; it has: beta"),
    (("role", "add", "testers", "captain", *APP),
     "there is no role captain; the roles of application 40: moderator"),
    (("role", "add", "testers", "admin", "--app", "1"), "--app: is no application of this project"),
    (("role", "add", "testers", "admin", "--app", "4711"),
     "there is no application 4711; `sso app list` shows them"),
    (("role", "delete", "testers", "captain", *APP),
     "ROLE: the group Testers neither gives nor takes away the role captain at application 40"),
    (("access", "testers", "disallow"), "the project would have no administrator with access to it"),
]  # fmt: skip


def test_failed_group_commands_change_nothing(applied: Sso, state: State) -> None:
    before = state()
    for arguments, failure in FAILURES:
        assert applied("group", *arguments).failure == failure, arguments
    assert state() == before


def test_group_needs_the_tag_project_for_access(applied: Sso) -> None:
    group_id = applied("group", "add", "Guests", "--project", "rd").lines[0].split()[1]
    advice = f"GROUP: Guests lacks the tag project; `sso group change {group_id} --tag project` adds it"
    assert applied("group", "access", "Guests", "disallow").failure == advice
    assert applied("group", "change", group_id, "--tag", "project").code == 0
    assert applied("group", "access", "Guests", "disallow").code == 0
    assert shown(applied, "Guests")["access"] == "disallow"
    assert applied("group", "access", "Guests", "none").code == 0
    assert applied("group", "delete", "Guests", "--yes").code == 0


def test_group_commands_are_audited(applied: Sso) -> None:
    before = len(applied("audit", "--project", "rd", "--json").lines)
    applied("group", "add", "Audited", "--project", "rd")
    applied("group", "member", "add", "Audited", BOB)
    applied("group", "role", "add", "Audited", "moderator", *APP)
    applied("group", "delete", "Audited", "--yes")
    newest = [json.loads(line) for line in applied("audit", "--project", "rd", "--json").lines]
    newest = newest[: len(newest) - before]
    assert [entry["operation"] for entry in newest] == [
        "group.delete",
        "project.cascade",
        "project.save",
        "group.access",
        "group.create",
    ]
    assert all(entry["operator"] and not entry["user_id"] for entry in newest)
