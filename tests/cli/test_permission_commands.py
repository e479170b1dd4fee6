"""The commands app, perm and audit."""

from pathlib import Path

import orjson
import pytest

from sso.cli.context import command_line_account
from sso.core.keys import GENERATE, key_id, private_pem, public_pem
from sso.core.net import parse_address
from sso.perm.stores.email_secret import email_secret_matches
from sso.services import Services
from tests.cli.conftest import Sso
from tests.kit.server import Server
from tests.state.studio import ANN, SECRET

LOCAL = parse_address("127.0.0.1")


@pytest.fixture(scope="module")
def environment(studio_service: Server) -> dict[str, str]:
    return studio_service.settings


def test_app_list_and_show(applied: Sso) -> None:
    assert "40\tTanks\tred_dawn" in applied("app", "list").lines
    in_project = applied("app", "list", "--project", "red_dawn").lines
    assert "40\tTanks\tred_dawn" in in_project
    assert all(line.endswith("\tred_dawn") for line in in_project)
    shown = orjson.loads("\n".join(applied("app", "show", "40").lines))
    assert (shown["name"], shown["private_key"], shown["access_keys"][0]["comment"]) == ("Tanks", "none", "ci")
    assert SECRET not in str(shown)
    assert applied("app", "show", "4711").failure == "there is no application 4711; `sso app list` shows them"


def test_app_add_prints_the_id_and_reports_conflicts(applied: Sso) -> None:
    application_id = applied("app", "add", "Planes", "--project", "RD").lines[-1].split()[-1]
    assert f"{application_id}\tPlanes\tred_dawn" in applied("app", "list", "--project", "rd").lines
    again = applied("app", "add", "Planes", "--project", "red_dawn").failure
    assert again == "NAME: another application of the project already has this name"
    assert applied("app", "add", "X", "--project", "none").failure.startswith("there is no project none;")
    assert applied("app", "list", "--project", "none").failure.startswith("there is no project none;")


def test_app_key_add_list_and_remove(applied: Sso, tmp_path: Path) -> None:
    key = GENERATE["ES256"]()
    file = tmp_path / "key.pem"
    file.write_text(public_pem(key.public_key()))
    kid = key_id(key.public_key())
    assert applied("app", "key", "add", "40", str(file)).lines == [f"kid {kid}"]
    assert f"{kid}\tES256" in applied("app", "key", "list", "40").lines
    assert applied("app", "key", "delete", "40", kid).lines == [f"{kid} is deleted"]
    assert "has no key" in applied("app", "key", "delete", "40", kid).failure
    file.write_text(private_pem(key))
    assert "expected a public key, not a private key" in applied("app", "key", "add", "40", str(file)).failure
    assert "cannot read" in applied("app", "key", "add", "40", str(tmp_path / "none")).failure


def test_app_service_jwt_needs_the_private_key(applied: Sso, studio_service: Server, tmp_path: Path) -> None:
    application_id = applied("app", "add", "Signed", "--project", "RD").lines[-1].split()[-1]
    assert "holds no private key" in applied("app", "service-jwt", application_id).failure
    key = GENERATE["EdDSA"]()
    file = tmp_path / "keys.json"

    def give(**meta: str) -> None:
        file.write_bytes(
            orjson.dumps({"applications": [{"application_id": int(application_id), "service_meta": meta}]})
        )
        assert applied("apply", str(file)).code == 0

    give(private_key=private_pem(key))
    assert "is not among the application's keys" in applied("app", "service-jwt", application_id).failure
    give(public_key=public_pem(key.public_key()))
    token = applied("app", "service-jwt", application_id).lines[-1]
    verified = studio_service.run_with_services(lambda services: services.permissions.service_jwts.verify(token, LOCAL))
    assert verified == (int(application_id), None)


def test_app_email_secret_is_created_once(applied: Sso, studio_service: Server) -> None:
    secret = applied("app", "email-secret", "40").out.split()[-1]
    assert applied("app", "email-secret", "40").out.split()[-1] == secret
    assert applied("app", "email-secret", "1").out.split()[-1] != secret

    async def check(services: Services) -> tuple[bool, bool]:
        right = await email_secret_matches(services.database, services.keyring, 40, secret)
        return right, await email_secret_matches(services.database, services.keyring, 40, "wrong")

    assert studio_service.run_with_services(check) == (True, False)
    assert "there is no application" in applied("app", "email-secret", "4711").failure


def test_perm_list_prints_rules_roles_or_tree(applied: Sso) -> None:
    assert applied("perm", "list", "bob@example.com", "--app", "40").lines == [
        "chat.ban|a,b",
        "chat.mute",
        "title",
    ]
    assert applied("perm", "list", "5002", "--app", "40", "--type", "roles").lines == ["moderator"]
    tree = orjson.loads("\n".join(applied("perm", "list", "5002", "--app", "40", "--type", "tree").lines))
    assert tree["public_data"]["title"] == {"value": "Major"}
    assert applied("perm", "list", "none").failure == "there is no user none"
    assert applied("perm", "list", "5002", "--app", "0").code == 2


def test_perm_who_and_can_answer_in_both_directions(applied: Sso) -> None:
    who = applied("perm", "who", "chat.mute", "--app", "40", "--reasons").lines
    assert [line.split("\t")[0] for line in who] == ["5001", "5002"]
    assert "role" in who[0]
    assert applied("perm", "who", "chat.nothing", "--app", "40").lines == []
    assert applied("perm", "who", "x", "--app", "4711").failure.startswith("there is no application 4711")
    can = applied("perm", "can", "ann@example.com", "--app", "40").lines
    assert {line.split("\t")[1] for line in can} == {
        line.partition("|")[0] for line in applied("perm", "list", "ann@example.com", "--app", "40").lines
    }
    record = orjson.loads(applied("perm", "can", "5001", "--rule", "chat.mute", "--json").lines[0])
    assert (record["application_id"], record["rule"], record["expires"]) == (40, "chat.mute", None)
    assert "future" in applied("perm", "who", "chat.mute", "--app", "40", "--at", "2100-01-01").failure


def test_perm_explain_prints_sources_or_reasons(applied: Sso) -> None:
    held = applied("perm", "explain", "ann@example.com", "chat.mute", "--app", "40").lines
    assert held == [
        "ann@example.com has chat.mute:",
        "  role moderator",
        "    granted by the project red_dawn to the group Testers, as an added user",
    ]
    missing = applied("perm", "explain", "bob@example.com", "red_dawn/project.can_remove_project").lines
    assert missing[0] == "bob@example.com does not have red_dawn/project.can_remove_project at application 1:"
    assert "  role admin has it, but is not assigned in the project" in missing
    explanation = orjson.loads("\n".join(applied("perm", "explain", "5002", "can_create_app", "--json").lines))
    assert (explanation["rule"], explanation["held"]) == ("can_create_app", False)


def test_audit_filters_and_formats_entries(applied: Sso) -> None:
    applied("role", "assign", ANN, "viewer")
    newest = applied("audit", "--limit", "1").lines
    assert len(newest) == 1
    actor = f"command line ({command_line_account()})"
    assert newest[0].split("\t")[1:] == ["permissions.save", f"1/{ANN}", actor, "", "roles"]
    entry = orjson.loads(applied("audit", "--limit", "1", "--json").lines[0])
    assert (entry["user_id"], entry["after"]["roles"]) == ("", [{"name": "root"}, {"name": "viewer"}])
    assert all("\trole.save\t40/" in line for line in applied("audit", "--app", "40", "--operation", "role.save").lines)
    assert applied("audit", "--project", "rd", "--operation", "project.publish").lines
    assert applied("audit", "--since", "2035-01-01").lines == []
    assert applied("audit", "--user", ANN).lines == []
    assert applied("audit", "--user", "none").failure == "there is no user none"
    assert applied("audit", "--since", "soon").code == 2
