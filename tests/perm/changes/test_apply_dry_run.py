"""``sso apply --dry-run`` and ``--override``, assertions in documents, and ``sso perm test``."""

import json
import subprocess
from typing import Any

import pytest

from tests.kit.permission_changes import CHAT, People, chat
from tests.perm.changes.conftest import dump
from tests.perm.endpoints.conftest import Studio

ANN = "ann@changes.example"


def sso(studio: Studio, document: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
    return studio.server.sso("apply", *options, "-", stdin=json.dumps(document), check=False)


def dry_run(studio: Studio, document: dict[str, Any]) -> dict[str, Any]:
    before = dump(studio)
    process = sso(studio, document, "--dry-run", "--json")
    assert dump(studio) == before
    report: dict[str, Any] = json.loads(process.stdout)
    assert process.returncode == (1 if report["failed_assertions"] else 0)
    return report


@pytest.fixture(scope="module")
def app(studio: Studio, people: People) -> int:
    """An application in which ann is staff, and staff may kick."""
    app = studio.application(**CHAT)
    studio.server.apply(
        {
            "roles": {str(app): [{"name": "staff", "meta": chat(kick=True)}]},
            "permissions": [{"user_id": ANN, "application_id": app, "data": {"roles": ["staff"]}}],
        }
    )
    return app


def test_dry_run_shows_records_and_users(studio: Studio, people: People, app: int) -> None:
    ann, bob, *_ = people
    document = {
        "users": [{"login": "new@changes.example", "user_id": "90001"}, {"login": ANN, "nick": "Ann"}],
        "roles": {str(app): [{"name": "staff", "meta": chat(mute="a")}, {"name": "crew", "meta": chat(shout=True)}]},
        "permissions": [
            {"user_id": "new@changes.example", "application_id": app, "data": {"roles": ["staff"]}},
            {"user_id": bob.user_id, "application_id": app, "data": {"roles": ["crew"]}},
        ],
    }
    report = dry_run(studio, document)
    # At applications of other tests, everybody may gain something, and so does the new user.
    here = [user for user in report["users"] if user["application_id"] == app]
    assert {(user["user_id"], tuple(user["gained"]), tuple(user["lost"])) for user in here} == {
        (ann.user_id, ("private_data.chat.mute|a",), ("private_data.chat.kick",)),
        (bob.user_id, ("private_data.chat.shout",), ()),
        ("90001", ("private_data.chat.mute|a",), ()),
    }
    assert (report["total"], report["exact"]) == (3, True)  # users
    assert report["warnings"] == ["roles: crew gives private_data.chat.shout, which the schema does not declare"]
    assert report["records"]["users[0]"] == "created"
    changes = {(item["operation"], item["target"]): item for item in report["changes"]}
    assert changes["role.save", f"{app}/staff"]["after"] == {"meta": chat(mute="a")}
    assert changes["user.save", ann.user_id]["after"] == {"nick": "Ann"}
    text = sso(studio, document, "--dry-run").stdout
    assert "would create 2, change 4, leave 0 unchanged" in text
    assert f"  {ANN} at application {app}: +private_data.chat.mute|a -private_data.chat.kick" in text
    assert f"  role.save {app}/staff: meta" in text


def test_attributes_of_users_in_a_document(studio: Studio, people: People) -> None:
    app = studio.application(**CHAT)
    role = {"name": "vips", "meta": chat(ban=True), "condition": {"tag": "changes_platinum"}}
    studio.server.apply({"roles": {str(app): [role]}})
    bob = people[1]
    report = dry_run(studio, {"users": [{"login": bob.login, "tags": ["changes_platinum"]}]})
    change = {"user_id": bob.user_id, "application_id": app, "gained": ["private_data.chat.ban"], "lost": []}
    assert report["users"] == [change]
    with_condition = {"roles": {str(app): [role | {"condition": {"tag": "titanium"}}]}}
    both = dry_run(studio, {"users": [{"login": bob.login, "tags": ["titanium"]}], **with_condition})
    assert both["users"] == [change]


def test_assertions_are_part_of_documents(studio: Studio, app: int) -> None:
    statements = [f"{ANN} may chat.kick", "only staff may chat.kick"]
    fresh = studio.application(**CHAT)
    failing = {"applications": [{"application_id": fresh, "assertions": statements}]}
    report = dry_run(studio, failing)
    assert [item["assertion"] for item in report["failed_assertions"]] == statements[:1]
    refused = sso(studio, failing)
    assert (refused.returncode, f"'{ANN} may chat.kick' would fail: {ANN} may not" in refused.stderr) == (1, True)
    document = failing | {
        "roles": {str(fresh): [{"name": "staff", "meta": chat(kick=True)}]},
        "permissions": [{"user_id": ANN, "application_id": fresh, "data": {"roles": ["staff"]}}],
    }
    assert sso(studio, document).returncode == 0
    assert sso(studio, document).stdout.startswith("created 0, changed 0")
    exported = json.loads(studio.server.sso("export").stdout)
    stored = next(item for item in exported["applications"] if item["application_id"] == fresh)
    assert stored["assertions"] == statements
    malformed = sso(studio, {"applications": [{"application_id": fresh, "assertions": ["ann must kick"]}]})
    assert "applications[0].assertions[0]: 'ann must kick' must be" in malformed.stderr


def test_perm_test_finds_what_an_override_has_passed(studio: Studio, people: People) -> None:
    app = studio.application(**CHAT)
    command = ("perm", "test", "--application-id", str(app))
    document: dict[str, Any] = {
        "applications": [{"application_id": app, "assertions": [f"{ANN} may chat.kick"]}],
        "roles": {str(app): [{"name": "staff", "meta": chat(kick=True)}]},
        "permissions": [{"user_id": ANN, "application_id": app, "data": {"roles": ["staff"]}}],
    }
    assert sso(studio, document).returncode == 0
    assert studio.server.sso(*command).stdout == "1 assertion holds\n"
    document["permissions"][0]["data"] = {"roles": []}
    assert sso(studio, document).returncode == 1
    assert sso(studio, document, "--override").returncode == 0
    failed = studio.server.sso(*command, check=False)
    assert failed.returncode == 1
    assert f"application {app}: {ANN} may chat.kick: {ANN} may not\n" in failed.stdout
    report = json.loads(studio.server.sso(*command, "--json", check=False).stdout)
    assert (report["checked"], report["failed"][0]["users"]) == (1, [people[0].user_id])
    unassigned = studio.server.sso("role", "assign", ANN, "staff", "--app", str(app))
    assert unassigned.returncode == 0
    assert studio.server.sso(*command).returncode == 0
    refused = studio.server.sso("role", "delete", "staff", "--app", str(app), "--yes", check=False)
    assert (refused.returncode, "would fail" in refused.stderr) == (1, True)
