"""The command role, with assignments."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Sso, State
from tests.kit.server import Server
from tests.state.studio import ANN, BOB

APP = ("--app", "40")


@pytest.fixture(scope="module")
def environment(studio_service: Server) -> dict[str, str]:
    return studio_service.settings


def shown(sso: Sso, name: str, app_id: int = 40) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(sso("role", "show", name, "--app", str(app_id)).out)
    return record


def version(sso: Sso, app_id: int = 40) -> int:
    return int(json.loads(sso("app", "show", str(app_id)).out)["schema_version"])


def test_role_add_list_show_change_and_delete(applied: Sso) -> None:
    before = version(applied)
    rules = ("--rule", "chat.kick", "--rule", "chat.mute|eu,us", "--rule", "public_data.title=Major")
    options = ("--description", "Helps", "--condition", "tag=beta", "--condition", "domain=example.com")
    assert applied("role", "add", "helper", *APP, *rules, *options, "--user-limit", "3", "--params", "eu").lines == [
        "role helper of application 40 is added"
    ]
    assert version(applied) == before + 1
    assert shown(applied, "helper") == {
        "application_id": 40,
        "name": "helper",
        "description": "Helps",
        "rules": ["chat.kick", "chat.mute|eu,us", "public_data.title=Major"],
        "params": "eu",
        "protected": False,
        "default": False,
        "condition": {"tag": "beta", "domain": "example.com"},
        "user_limit": 3,
    }
    assert "helper\t3\tcondition,at most 3 users\tHelps" in applied("role", "list", *APP).lines
    change = ("role", "change", "helper", *APP)
    assert applied(
        *change, "--remove-rule", "public_data.title", "--rule", "chat.kick=false", "--no-condition"
    ).lines == ["role helper of application 40 is changed"]
    assert version(applied) == before + 2
    record = shown(applied, "helper")
    assert (record["rules"], record["condition"]) == (["chat.kick=false", "chat.mute|eu,us"], {})
    assert applied(*change, "--rule", "chat.kick=false").lines == ["role helper of application 40 is as before"]
    assert version(applied) == before + 2
    assert applied("role", "delete", "helper", *APP, "--yes").lines == ["role helper of application 40 is deleted"]
    assert version(applied) == before + 3
    assert [line.split("\t")[0] for line in applied("role", "list", *APP).lines] == ["moderator"]


def test_role_list_without_app_shows_the_roles_for_projects(applied: Sso) -> None:
    roles = {line.split("\t")[0]: line.split("\t")[1:] for line in applied("role", "list").lines}
    assert roles["viewer"] == ["3", "", "See a project, its applications and services."]
    assert roles["root"][1:] == ["protected", "Every right everywhere."]
    assert int(roles["root"][0]) > 7


FAILURES: list[tuple[tuple[str, ...], str]] = [
    (("add", "moderator", *APP), "application 40 has a role moderator already; `sso role change` changes it"),
    (("add", "a.b", *APP), "ROLE: a name must be 1 to 64 letters, digits, underscores or dashes"),
    (("add", "x", "--app", "4711"), "there is no application 4711; `sso app list` shows them"),
    (("add", "x", *APP, "--rule", "a b"),
     "--rule: private_data: a name must be 1 to 64 letters, digits, underscores or dashes"),
    (("add", "x", *APP, "--rule", "a", "--rule", "a.b"), "--rule: private_data.a: a rule has no rules below it"),
    (("add", "x", *APP, "--params", "a|b"), "--params: must not contain | or : or control characters"),
    (("add", "x", *APP, "--condition", "domian=a"),
     '--condition: "domian" is not known. Did you mean "domain"?'),
    (("add", "x", *APP, "--condition", "domain"),
     "--condition: expected MEMBER=VALUE such as domain=studio.example, or a JSON object"),
    (("add", "x", *APP, "--condition", "{domain"),
     '--condition: expected JSON such as {"domain": "studio.example"}'),
    (("add", "x", *APP, "--condition", "tag=a", "--condition", "tag=b"),
     '--condition: tag is given twice; expected {"or": […]} or {"and": […]} in JSON'),
    (("add", "x", *APP, "--condition", "ip=nowhere"), "--condition: ip: not an IP address"),
    (("change", "moderator", *APP, "--remove-rule", "chat.x"), "--remove-rule: the role has no rule chat.x"),
    (("change", "captain", *APP, "--rule", "a"),
     "there is no role captain; the roles of application 40: moderator"),
    (("delete", "captain", *APP, "--yes"), "there is no role captain; the roles of application 40: moderator"),
    (("delete", "root", "--app", "1", "--yes"), "the role root of the central application cannot be removed"),
    (("change", "root", "--app", "1", "--regular"), "the role root of the central application is protected"),
    (("delete", "admin", "--app", "1", "--yes"), "a project would have no administrator with access to it"),
    (("change", "admin", "--app", "1", "--remove-rule", "project.can_manage_project"),
     "a project would have no administrator with access to it"),
    (("assign", ANN, "captain", *APP), "there is no role captain; the roles of application 40: moderator"),
    (("assign", ANN, "a.b", *APP), "ROLE: a name must be 1 to 64 letters, digits, underscores or dashes"),
    (("assign", "none", "moderator", *APP), "there is no user none"),
    (("unassign", ANN, "moderator", *APP), "ann@example.com has no role moderator assigned at application 40"),
]  # fmt: skip


def test_failed_role_commands_change_nothing(applied: Sso, state: State) -> None:
    before = state()
    for arguments, failure in FAILURES:
        assert applied("role", *arguments).failure == failure, arguments
    assert state() == before


def test_role_commands_refuse_wrong_usage(applied: Sso) -> None:
    assert applied("role", "change", "moderator", *APP).code == 2
    assert applied("role", "add", "x").code == 2
    for wrong in ("Tanks", "0", "-1", "²", "99999999999"):
        result = applied("role", "list", "--app", wrong)
        assert (result.code, "expected the id of an application, such as 10" in result.err) == (2, True)
    assert applied("role", "assign", ANN, "root", "--until", "soon").code == 2
    assert applied("role", "add", "x", *APP, "--rule", "\udcff").code == 2


def test_only_protected_roles_have_protected_rules(applied: Sso, tmp_path: Any) -> None:
    file = tmp_path / "schema.json"
    rule = {"value": False, "protected": True}
    file.write_text(
        json.dumps({"schemas": {"40": {"private_data": {"chat": {"ban": rule, "mute": {"value": False}}}}}})
    )
    assert applied("apply", str(file)).code == 0
    add = ("role", "add", "warden", *APP, "--rule", "chat.ban")
    assert "chat.ban is a protected rule" in applied(*add).failure
    assert applied(*add, "--protected").code == 0
    assert "chat.ban is a protected rule" in applied("role", "change", "warden", *APP, "--regular").failure
    assert "protected" in applied("group", "role", "add", "testers", "warden", *APP).failure
    assert applied("role", "delete", "warden", *APP, "--yes").code == 0


def test_role_that_becomes_protected_is_taken_from_groups(applied: Sso) -> None:
    assert "chat.mute" in applied("perm", "list", ANN, *APP).lines
    assert applied("role", "change", "moderator", *APP, "--protected").code == 0
    assert "chat.mute" not in applied("perm", "list", ANN, *APP).lines
    assert applied("role", "change", "moderator", *APP, "--regular").code == 0


def test_role_assign_and_unassign(applied: Sso) -> None:
    assign = ("role", "assign", "ann@example.com", "moderator", *APP)
    has = "ann@example.com has the role moderator at application 40"
    assert applied(*assign, "--until", "2035-01-01").lines == [has]
    lines = applied("perm", "explain", ANN, "chat.mute", *APP).lines
    assert "    assigned, until 2035-01-01 00:00:00Z" in lines
    assert applied(*assign, "--until", "2035-01-01").lines == [f"{has}, as before"]
    assert applied(*assign, "--ttl", "60").lines == [has]
    assert applied("role", "unassign", ANN, "moderator", *APP).lines == [
        "ann@example.com no longer has the role moderator at application 40"
    ]


def test_role_assign_respects_the_user_limit(applied: Sso) -> None:
    assert applied("role", "add", "captain", *APP, "--rule", "lead", "--user-limit", "1").code == 0
    assert applied("role", "assign", ANN, "captain", *APP).code == 0
    assert applied("role", "assign", BOB, "captain", *APP).failure == "ROLE: captain can have at most 1 users"
    assert applied("role", "delete", "captain", *APP, "--yes").code == 0


def test_role_commands_are_audited(applied: Sso) -> None:
    before = len(applied("audit", "--app", "40", "--json").lines)
    applied("role", "add", "scout", *APP, "--rule", "map.reveal")
    applied("role", "assign", ANN, "scout", *APP)
    applied("role", "change", "scout", *APP, "--description", "Sees more")
    applied("role", "delete", "scout", *APP, "--yes")
    newest = [json.loads(line) for line in applied("audit", "--app", "40", "--json").lines]
    newest = newest[: len(newest) - before]
    assert [entry["operation"] for entry in newest] == [
        "permissions.cascade",
        "role.delete",
        "role.save",
        "permissions.save",
        "role.save",
    ]
    assert all(entry["operator"] and not entry["user_id"] for entry in newest)
