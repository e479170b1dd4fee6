"""The command project, with its members."""

import io
import json
import sys
from typing import Any

import pytest

from tests.cli.conftest import Sso, State
from tests.kit.server import Server
from tests.state.studio import ANN, BOB, TESTERS


@pytest.fixture(scope="module")
def environment(studio_service: Server) -> dict[str, str]:
    return studio_service.settings


def shown(sso: Sso, project: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(sso("project", "show", project).out)
    return record


def members(sso: Sso, project: str) -> list[str]:
    return [line.split("\t", 1)[1] for line in sso("project", "member", "list", project).lines]


def test_project_list_and_show(applied: Sso) -> None:
    assert applied("project", "list").lines[-1] == "red_dawn\tRed Dawn\tapplications 1, groups 1, members 2"
    assert shown(applied, "Red Dawn") == shown(applied, "red-dawn") == shown(applied, "rd")
    record = shown(applied, "RD")
    assert (record["title"], record["allow"], record["disallow"]) == ("Red Dawn", [TESTERS], [])
    assert applied("project", "show", "none").failure == "there is no project none; `sso project list` shows them"


def test_project_add_change_and_delete(applied: Sso) -> None:
    add = ("project", "add", "Blue Sky", "--admin", "ann@example.com", "--admin", BOB, "--alias", "bs")
    assert applied(*add, "--description", "Second", "--domain", "example.com").lines == ["project_id blue_sky"]
    assert members(applied, "bs") == ["ann@example.com\tadmin", "bob@example.com\tadmin"]
    change = ("project", "change", "bs", "--title", "Blue", "--alias", "blue", "--remove-alias", "bs")
    assert applied(*change, "--domain", "b.example", "--remove-domain", "example.com").failure == (
        "the project would have no administrator with access to it"
    )
    assert applied(*change, "--domain", "b.example").lines == ["project blue_sky is changed"]
    record = shown(applied, "blue")
    assert (record["title"], record["description"], record["aliases"]) == ("Blue", "Second", ["blue"])
    assert record["settings"] == {"allowed_domains": ["example.com", "b.example"]}
    assert applied("project", "delete", "blue", "--yes").lines == ["project blue_sky is deleted"]
    assert applied("project", "delete", "blue", "--yes").failure == "project blue_sky is deleted already"
    assert applied("project", "change", "blue", "--title", "X").failure == "project blue is deleted"


FAILURES: list[tuple[tuple[str, ...], str]] = [
    (("add", "a/b"), "TITLE: must be 1 to 32 Latin letters, digits, spaces or underscores"),
    (("add", "Game"), "TITLE: this title is reserved"),
    (("add", "RED DAWN"), "title or aliases: already used by another project"),
    (("add", "New", "--alias", "Red-Dawn"), "title or aliases: already used by another project"),
    (("add", "New", "--alias", "a.b"), "--alias: a name must be 1 to 64 letters, digits, underscores or dashes"),
    (("add", "New", "--domain", "a@b"), "--domain: must be a domain, the part of a login after the @"),
    (("add", "New", "--admin", "none@example.com"), "there is no user none@example.com"),
    (("add", "New", "--description", "x" * 1025), "--description: must be at most 1024 characters"),
    (("change", "rd", "--title", "Game"), "--title: this title is reserved"),
    (("change", "rd", "--alias", "red-dawn"), "--alias: is the id of the project itself"),
    (("change", "rd", "--remove-alias", "x"), "--remove-alias: the project has no alias x; it has: rd"),
    (("change", "none", "--title", "X"), "there is no project none; `sso project list` shows them"),
    (("member", "add", "rd", "none", "viewer"), "there is no user none"),
    (("member", "add", "rd", BOB, "root"), "ROLE: root is protected and cannot be assigned through a project"),
    (("member", "add", "rd", BOB, "app_admin", "--app", "41"), "--app: 41: does not belong to this project"),
    (("member", "delete", "rd", BOB, "admin"), "bob@example.com has no role admin in the project red_dawn"),
    (("member", "delete", "rd", ANN), "the project would have no administrator with access to it"),
    (("member", "add", "rd", ANN, "admin", "--until", "2035-01-01"),
     "the project would have no administrator whose role does not end"),
]  # fmt: skip


def test_failed_project_commands_change_nothing(applied: Sso, state: State) -> None:
    before = state()
    for arguments, failure in FAILURES:
        assert applied("project", *arguments).failure == failure, arguments
    assert state() == before


def test_project_commands_refuse_wrong_usage(applied: Sso) -> None:
    assert applied("project", "change", "rd").code == 2
    assert applied("project", "member", "add", "rd", BOB, "app_admin", "--app", "40", "--service", "40").code == 2
    assert applied("project", "show", "\udcff").code == 2
    assert "there is no role moderator; the roles of application 1: admin," in (
        applied("project", "member", "add", "rd", BOB, "moderator").failure
    )


def test_delete_needs_confirmation(applied: Sso, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    result = applied("project", "delete", "red_dawn")
    assert result.code == 1
    assert result.err.endswith("sso: nothing is deleted: expected the answer y, or the option --yes\n")
    assert not shown(applied, "red_dawn")["removed"]


def test_project_member_add_and_remove(applied: Sso) -> None:
    member = ("project", "member")
    expected = "bob@example.com has the role developer in the project red_dawn"
    assert applied(*member, "add", "rd", "bob@example.com", "developer").lines == [expected]
    assert applied(*member, "add", "rd", BOB, "developer").lines == [f"{expected}, as before"]
    assert applied(*member, "add", "rd", BOB, "app_admin", "--app", "40", "--until", "2035-01-01").lines == [
        "bob@example.com has the role app_admin in the project red_dawn at applications.40"
    ]
    assert applied(*member, "add", "rd", BOB, "srv_admin", "--service", "40", "--ttl", "60").code == 0
    assert applied(*member, "add", "rd", BOB, "manager", "--group", "testers").code == 0
    assert members(applied, "rd")[1].split("\t")[1].split(", ") == [
        "viewer",
        "developer",
        "app_admin until 2035-01-01 00:00:00Z at applications.40",
        "srv_admin for 60 s after each read at services.40",
        f"group_admin at groups.{TESTERS}",
        f"manager at groups.{TESTERS}",
    ]
    assert "red_dawn/project.can_manage_applications" in applied("perm", "list", BOB).lines
    assert applied(*member, "delete", "rd", BOB, "developer").lines == [
        "bob@example.com no longer has the role developer in the project red_dawn"
    ]
    assert applied(*member, "delete", "rd", BOB, "--group", TESTERS).lines == [
        f"bob@example.com no longer has a role in the project red_dawn at groups.{TESTERS}"
    ]
    assert applied(*member, "delete", "rd", BOB).code == 0
    assert members(applied, "rd") == ["ann@example.com\tadmin"]


def test_project_member_add_respects_the_user_limit_of_a_role(applied: Sso) -> None:
    assert applied("role", "change", "viewer", "--app", "1", "--user-limit", "1").code == 0
    assert applied("project", "member", "add", "rd", BOB, "viewer").lines[0].endswith(", as before")
    limited = "ROLE: viewer can have at most 1 users"
    assert applied("project", "member", "add", "rd", ANN, "viewer").failure == limited
    assert applied("role", "change", "viewer", "--app", "1", "--user-limit", "0").code == 0


def test_project_commands_are_audited(applied: Sso) -> None:
    before = applied("audit", "--project", "rd", "--json").lines
    applied("project", "change", "rd", "--description", "A new studio")
    applied("project", "member", "add", "rd", BOB, "manager")
    applied("project", "member", "add", "rd", BOB, "manager")
    newest = [json.loads(line) for line in applied("audit", "--project", "rd", "--json").lines][: -len(before)]
    assert [entry["operation"] for entry in newest] == ["membership.save", "project.save"]
    assert all(entry["operator"] and not entry["user_id"] for entry in newest)
    assert newest[1]["after"]["description"] == "A new studio"
