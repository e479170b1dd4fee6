"""The commands app, project, perm and audit."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import trio

from sso.cli.context import command_line_actor
from sso.config import load
from sso.core.keys import GENERATE, key_id, private_pem, public_pem
from sso.core.net import parse_address
from sso.perm.stores.email_secret import email_secret_matches
from sso.services import Services, open_services
from tests.cli.conftest import Sso
from tests.state.studio import ANN, SECRET, TESTERS, studio

LOCAL = parse_address("127.0.0.1")


@pytest.fixture
def applied(sso: Sso, tmp_path: Path) -> Sso:
    """The command runner, with the studio document applied."""
    file = tmp_path / "studio.json"
    file.write_bytes(orjson.dumps(studio()))
    sso("apply", str(file)).lines  # noqa: B018 - it must succeed
    return sso


def test_perm_grant_creates_the_first_administrator_on_an_empty_database(sso: Sso) -> None:
    assert sso("user", "add", "first@example.com").code == 0
    assert sso("perm", "grant", "first@example.com", "root").lines == [
        "first@example.com has the role root at application 1"
    ]
    assert "can_create_projects" in sso("perm", "list", "first@example.com").lines


def test_app_list_and_show(applied: Sso) -> None:
    assert "40\tTanks\tred_dawn" in applied("app", "list").lines
    assert applied("app", "list", "--project", "red_dawn").lines == ["40\tTanks\tred_dawn"]
    shown = orjson.loads("\n".join(applied("app", "show", "40").lines))
    assert (shown["name"], shown["private_key"], shown["access_keys"][0]["comment"]) == ("Tanks", "none", "ci")
    assert SECRET not in str(shown)
    assert applied("app", "show", "4711").failure == "there is no application 4711; `sso app list` shows them"


def test_app_create_prints_the_id_and_reports_conflicts(applied: Sso) -> None:
    application_id = applied("app", "create", "Planes", "--project", "red_dawn").lines[-1].split()[-1]
    assert f"{application_id}\tPlanes\tred_dawn" in applied("app", "list").lines
    again = applied("app", "create", "Planes", "--project", "red_dawn").failure
    assert again == "name: another application of the project already has this name"
    assert applied("app", "create", "X", "--project", "none").failure == "project_id: there is no such project"


def test_app_key_add_list_and_remove(applied: Sso, tmp_path: Path) -> None:
    key = GENERATE["ES256"]()
    file = tmp_path / "key.pem"
    file.write_text(public_pem(key.public_key()))
    kid = key_id(key.public_key())
    assert applied("app", "key", "add", "40", str(file)).lines == [f"kid {kid}"]
    assert applied("app", "key", "list", "40").lines == [f"{kid}\tES256"]
    assert applied("app", "key", "remove", "40", kid).lines == [f"{kid} is removed"]
    assert "has no key" in applied("app", "key", "remove", "40", kid).failure
    file.write_text(private_pem(key))
    assert "expected a public key, not a private key" in applied("app", "key", "add", "40", str(file)).failure
    assert "cannot read" in applied("app", "key", "add", "40", str(tmp_path / "none")).failure


def test_app_service_jwt_needs_the_private_key(applied: Sso, environment: dict[str, str], tmp_path: Path) -> None:
    assert "holds no private key" in applied("app", "service-jwt", "40").failure
    key = GENERATE["EdDSA"]()
    file = tmp_path / "keys.json"

    def give(**meta: str) -> None:
        file.write_bytes(orjson.dumps({"applications": [{"application_id": 40, "service_meta": meta}]}))
        assert applied("apply", str(file)).code == 0

    give(private_key=private_pem(key))
    assert "is not among the application's keys" in applied("app", "service-jwt", "40").failure
    give(public_key=public_pem(key.public_key()))
    token = applied("app", "service-jwt", "40").lines[-1]
    assert _in_services(environment, lambda services: services.permissions.service_jwts.verify(token, LOCAL)) == 40


def test_app_email_secret_is_created_once(applied: Sso, environment: dict[str, str]) -> None:
    secret = applied("app", "email-secret", "40").out.split()[-1]
    assert applied("app", "email-secret", "40").out.split()[-1] == secret
    assert applied("app", "email-secret", "1").out.split()[-1] != secret

    async def check(services: Services) -> tuple[bool, bool]:
        right = await email_secret_matches(services.database, services.keyring, 40, secret)
        return right, await email_secret_matches(services.database, services.keyring, 40, "wrong")

    assert _in_services(environment, check) == (True, False)
    assert "there is no application" in applied("app", "email-secret", "4711").failure


def test_project_list_show_members_and_remove(applied: Sso, tmp_path: Path) -> None:
    assert [line.split("\t")[:2] for line in applied("project", "list").lines][-1] == ["red_dawn", "Red Dawn"]
    assert orjson.loads("\n".join(applied("project", "show", "rd").lines))["title"] == "Red Dawn"
    assert applied("project", "members", "red_dawn").lines == [
        f"{ANN}\tann@example.com\tadmin",
        f"5002\tbob@example.com\tviewer, group_admin at groups.{TESTERS}",
    ]
    assert applied("project", "show", "none").failure.startswith("there is no project none")
    file = tmp_path / "p.json"
    file.write_bytes(orjson.dumps({"projects": [{"title": "Gone"}]}))
    assert applied("apply", str(file)).code == 0
    assert applied("project", "remove", "gone", "--yes").lines == ["gone is removed"]
    assert applied("project", "remove", "gone", "--yes").failure == "gone is already removed"


def test_perm_list_prints_rules_roles_or_tree(applied: Sso) -> None:
    assert applied("perm", "list", "bob@example.com", "--app", "40").lines == [
        "chat.ban|a,b",
        "chat.mute",
        "public_data.title",
    ]
    assert applied("perm", "list", "5002", "--app", "40", "--type", "roles").lines == ["moderator"]
    tree = orjson.loads("\n".join(applied("perm", "list", "5002", "--app", "40", "--type", "tree").lines))
    assert tree["public_data"]["title"] == {"value": "Major"}
    assert applied("perm", "list", "none").failure == "there is no user none"
    assert applied("perm", "list", "5002", "--app", "0").code == 2


def test_perm_explain_prints_sources_or_reasons(applied: Sso) -> None:
    held = applied("perm", "explain", "ann@example.com", "chat.mute", "--app", "40").lines
    assert held == [
        "ann@example.com has chat.mute:",
        "  role moderator",
        "    granted by the project red_dawn to the group Testers, as an added user",
    ]
    missing = applied("perm", "explain", "bob@example.com", "red_dawn/project.can_remove_project").lines
    assert missing[0] == "bob@example.com does not have red_dawn/project.can_remove_project:"
    assert "  role admin has it, but is not assigned in the project" in missing
    explanation = orjson.loads("\n".join(applied("perm", "explain", "5002", "can_create_app", "--json").lines))
    assert (explanation["rule"], explanation["held"]) == ("can_create_app", False)


def test_perm_grant_and_revoke(applied: Sso) -> None:
    grant = ("perm", "grant", "ann@example.com", "moderator", "--app", "40")
    assert applied(*grant, "--expired", "2035-01-01").lines == [
        "ann@example.com has the role moderator at application 40"
    ]
    lines = applied("perm", "explain", ANN, "chat.mute", "--app", "40").lines
    assert "    assigned, until 2035-01-01 00:00:00Z" in lines
    assert applied(*grant, "--expired", "2035-01-01").lines[0].endswith(", as before")
    assert applied(*grant, "--ttl", "60").code == 0
    assert applied("perm", "revoke", ANN, "moderator", "--app", "40").code == 0
    assert "has no role moderator assigned" in applied("perm", "revoke", ANN, "moderator", "--app", "40").failure
    unknown = applied("perm", "grant", ANN, "captain", "--app", "40").failure
    assert unknown == "roles[0]: there is no role captain; the roles of application 40: moderator"
    assert applied("perm", "grant", ANN, "a.b").code == 2
    assert applied("perm", "grant", ANN, "root", "--expired", "soon").code == 2


def test_audit_filters_and_formats_entries(applied: Sso) -> None:
    applied("perm", "grant", ANN, "viewer")
    newest = applied("audit", "--most", "1").lines
    assert len(newest) == 1
    assert newest[0].endswith(f"permissions.save  1/{ANN}  by command line ({command_line_actor().operator})  (roles)")
    entry = orjson.loads(applied("audit", "--most", "1", "--json").lines[0])
    assert (entry["user_id"], entry["after"]["roles"]) == ("", [{"name": "root"}, {"name": "viewer"}])
    assert all("  role.save  40/" in line for line in applied("audit", "--app", "40", "--operation", "role.save").lines)
    assert applied("audit", "--project", "rd", "--operation", "project.publish").lines
    assert applied("audit", "--since", "2035-01-01").lines == []
    assert applied("audit", "--user", ANN).lines == []
    assert applied("audit", "--user", "none").failure == "there is no user none"
    assert applied("audit", "--since", "soon").code == 2


def test_every_command_has_help(sso: Sso) -> None:
    for verb in (
        ("app",),
        ("app", "key"),
        ("app", "key", "add"),
        ("project",),
        ("perm",),
        ("perm", "explain"),
        ("audit",),
    ):
        assert "Usage: sso " + " ".join(verb) in sso(*verb, "--help").out
    listed = sso("--help").out
    assert all(f"  {verb} " in listed for verb in ("app", "project", "perm", "audit"))


def _in_services(environment: dict[str, str], work: Callable[[Services], object]) -> object:
    async def run() -> object:
        async with open_services(load(None, environment), environment["SSO_DATABASE_URL"]) as services:
            return await work(services)  # type: ignore[misc]

    return trio.run(run)
