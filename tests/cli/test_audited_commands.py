"""Every command that changes something leaves an audit entry that names the operator, and no secret."""

import json
import pwd
from collections.abc import Callable
from os import getuid
from pathlib import Path
from typing import Any

import pytest

from sso.core.keys import GENERATE, public_pem
from tests.cli.conftest import Sso
from tests.kit.server import Server

Latest = Callable[[], dict[str, Any]]


@pytest.fixture(scope="module")
def environment(server: Server) -> dict[str, str]:
    return server.settings


@pytest.fixture
def latest(sso: Sso) -> Latest:
    """The newest entry, checked for what all entries of the command line have."""

    def read() -> dict[str, Any]:
        entry: dict[str, Any] = json.loads(sso("audit", "--json", "--limit", "1").out)
        assert pwd.getpwuid(getuid()).pw_name in entry["operator"]
        assert entry["user_id"] == ""
        return entry

    return read


def test_commands_of_sso_user_are_audited(sso: Sso, latest: Latest) -> None:
    output = sso("user", "add", "audited@example.com").out.split()
    password, user_id = output[1], output[3]
    entry = latest()
    assert (entry["operation"], entry["target"], entry["before"]) == ("user.create", user_id, None)
    assert entry["after"]["login"] == "audited@example.com"
    assert password not in str(entry)
    assert "argon2" not in str(entry)
    for command, operation, after in (
        (["disable"], "user.save", {"disabled": True}),
        (["enable"], "user.save", {"disabled": False}),
        (["set-password"], "user.save", {"password": "…"}),
        (["reset-2fa"], "user.reset_2fa", {"second_factors": [], "passkeys": 0, "signed_in": False}),
        (["end-sessions"], "user.end_sessions", {"signed_in": False, "sessions": [], "games": []}),
        (["export"], "user.export", {"exported": True}),
    ):
        sso("user", *command, user_id)
        entry = latest()
        assert (entry["operation"], entry["target"], entry["after"]) == (operation, user_id, after)
        if "disabled" in after:  # the console can undo it
            assert entry["before"] == {"disabled": not after["disabled"]}


def test_commands_of_sso_client_are_audited(sso: Sso, latest: Latest) -> None:
    secret = sso("client", "add", "audited", "--profile", "strict", "--host", "shop.example.com").out.split()[-1]
    entry = latest()
    assert (entry["operation"], entry["target"]) == ("client.create", "audited")
    assert entry["after"]["redirect_hosts"] == ["shop.example.com"]
    assert entry["after"]["client_secret"] == "…"
    secret += sso("client", "rotate-secret", "audited").out.split()[-1]
    assert latest()["operation"] == "client.rotate_secret"
    sso("client", "rotate-secret", "audited", "--finish")
    assert latest()["operation"] == "client.finish_rotation"
    sso("client", "disable", "audited")
    assert latest()["after"] == {"disabled": True}
    sso("client", "enable", "audited")
    entry = latest()
    assert (entry["operation"], entry["before"], entry["after"]) == (
        "client.save",
        {"disabled": True},
        {"disabled": False},
    )
    before = sso("audit", "--json", "--limit", "20").out
    assert secret[:20] not in before
    assert secret[-20:] not in before
    sso("client", "disable", "nobody")
    assert sso("audit", "--json", "--limit", "20").out == before


def test_commands_of_sso_app_and_sso_key_are_audited(sso: Sso, latest: Latest, tmp_path: Path) -> None:
    app = sso("app", "add", "Audited").out.split()[-1]
    assert latest()["operation"] == "application.create"
    secret = sso("app", "email-secret", app).out.split()[-1]
    entry = latest()
    assert (entry["operation"], entry["target"], entry["after"]) == (
        "application.email_secret",
        app,
        {"email_secret": "…"},
    )
    assert secret not in sso("audit", "--json", "--limit", "20").out
    sso("app", "email-secret", app)  # only read
    assert latest()["operation"] == "application.email_secret.read"
    file = tmp_path / "key.pem"
    file.write_text(public_pem(GENERATE["EdDSA"]().public_key()))
    kid = sso("app", "key", "add", app, str(file)).out.split()[-1]
    assert latest()["operation"] == "application.key.add"
    sso("app", "key", "delete", app, kid)
    assert latest()["operation"] == "application.key.remove"
    sso("key", "rotate", "--alg", "EdDSA", "--side")
    assert latest()["operation"] == "signing_key.rotate"


def test_changes_of_sso_apply_are_audited(sso: Sso, latest: Latest, tmp_path: Path) -> None:
    def apply(**document: Any) -> None:
        file = tmp_path / "state.json"
        file.write_text(json.dumps(document))
        sso("apply", str(file))

    user = {"login": "applied@example.com", "password": "correct horse battery", "nick": "A"}
    apply(users=[user])
    created = latest()
    assert created["operation"] == "user.create"
    apply(users=[user])
    assert latest()["id"] == created["id"]
    apply(users=[user | {"nick": "B", "password": "another horse battery"}])
    entry = latest()
    assert (entry["operation"], entry["target"]) == ("user.save", created["target"])
    assert (entry["before"], entry["after"]) == ({"nick": "A", "password": "…"}, {"nick": "B", "password": "…"})
    client = {"client_id": "applied", "client_secret": "x" * 40, "redirect_hosts": ["a.example.com"]}
    apply(clients=[client])
    assert latest()["operation"] == "client.create"
    apply(clients=[client | {"redirect_hosts": ["b.example.com"]}])
    entry = latest()
    assert (entry["operation"], entry["before"], entry["after"]) == (
        "client.save",
        {"redirect_hosts": ["a.example.com"]},
        {"redirect_hosts": ["b.example.com"]},
    )
    apply(projects=[{"title": "Audited Project"}])
    assert latest()["operation"] == "project.publish"
