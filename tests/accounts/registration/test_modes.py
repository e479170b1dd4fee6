"""Who can register: SSO_REGISTRATION and invitations."""

from collections.abc import Iterator
from email import message_from_string, policy
from pathlib import Path

import orjson
import pytest

from sso.core.ids import digest, secret_token
from tests.kit.browser import Browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.registration import complete, new_address
from tests.kit.server import QUICK, Server, running, until
from tests.kit.smtp import mail_server


@pytest.fixture(scope="module")
def invite_server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = QUICK | {"SSO_REGISTRATION": "invite", "SSO_DATABASE_URL": postgres_server.fresh()}
    with running(tmp_path_factory.mktemp("invite"), **settings) as server:
        yield server


@pytest.fixture
def newcomer(invite_server: Server) -> Iterator[Browser]:
    with Browser(invite_server) as browser:
        yield browser


def invite(server: Server, address: str, *options: str) -> str:
    """Returns the path of the link."""
    link = server.sso("user", "invite", address, *options).stdout.strip()
    assert link.startswith(f"{server.base_url}/register?token=")
    return link.removeprefix(server.base_url)


def test_registration_is_closed_by_default(server: Server) -> None:
    with Browser(server) as browser:
        assert browser.get("/register").status_code == 403
        assert "Registration is closed" in browser.page.text
        assert "/register" not in browser.get("/login").text
        refused = server.sso("user", "invite", new_address(), check=False)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "invitations need SSO_REGISTRATION to be invite or open" in refused.stderr
        csrf = browser.get("/login").text.split('name="csrf" value="')[1].split('"')[0]
        for path in ("/register", "/register/complete"):
            assert browser.post(path, {"csrf": csrf, "email": new_address()}).status_code == 403


def test_without_an_invitation_nobody_registers(newcomer: Browser) -> None:
    assert newcomer.get("/register").status_code == 403
    assert "open the link in your invitation" in newcomer.page.text
    assert "/register" not in newcomer.get("/login").text
    assert newcomer.post("/register", newcomer.form("/login") | {"email": new_address()}).status_code == 403


def test_invitation_creates_a_user_with_a_verified_address(newcomer: Browser, invite_server: Server) -> None:
    address = new_address()
    newcomer.get(invite(invite_server, address))
    assert address in newcomer.page.text
    newcomer.follow(complete(newcomer))
    assert "Your account has been created" in newcomer.notice
    [user] = query(invite_server, "SELECT * FROM users WHERE login = $1", address)
    assert user["email_verified"]
    events = query(invite_server, "SELECT kind FROM account_events WHERE user_id = $1 ORDER BY id", user["user_id"])
    assert [event["kind"] for event in events] == ["registered", "signed_in"]
    done = invite_server.sso("user", "invite", address.upper(), check=False)
    assert (done.returncode, done.stderr.strip()) == (1, f"sso: {address.upper()} already has an account")


def test_invitations_are_listed_and_revoked(newcomer: Browser, invite_server: Server) -> None:
    address, other = new_address(), new_address()
    link = invite(invite_server, address, "--days", "1")
    invite(invite_server, other)
    lines = map(orjson.loads, invite_server.sso("user", "invitations", "--json").stdout.splitlines())
    listed = {line["login"]: line for line in lines}
    assert listed[address]["expires"] - listed[address]["created"] == 86400
    assert listed[other]["expires"] - listed[other]["created"] == 7 * 86400
    assert "token" not in invite_server.sso("user", "invitations").stdout
    invite_server.sso("user", "invitations", "--revoke", address.upper())
    invite_server.sso("user", "invitations", "--revoke", listed[other]["id"])
    assert newcomer.get(link).status_code == 410
    assert invite_server.sso("user", "invitations", "--revoke", address, check=False).returncode == 1
    operations = query(invite_server, "SELECT operation FROM audit WHERE target = $1 ORDER BY id", other)
    assert [row["operation"] for row in operations] == ["invitation.create", "invitation.delete"]


def test_link_of_open_registration_creates_nothing_after_the_mode_has_changed(
    newcomer: Browser, invite_server: Server
) -> None:
    """The mail was sent while SSO_REGISTRATION was open."""
    address, secret = new_address(), secret_token()
    sql = """INSERT INTO mailed_links (digest, purpose, data, expires)
        VALUES ($1, 'registration', jsonb_build_object('login', $2::text), now() + interval '1 day')"""
    query(invite_server, sql, digest(secret), address)
    assert newcomer.get(f"/register?token={secret}").status_code == 410
    newcomer.get(invite(invite_server, new_address()))
    form = newcomer.form("/register/complete") | {"token": secret, "nick": "New", "password": PASSWORD}
    assert newcomer.post("/register/complete", form).status_code == 410
    assert query(invite_server, "SELECT 1 FROM users WHERE login = $1", address) == []


@pytest.mark.parametrize("address", ["ann", "ann@", "a" * 400 + "@example.com"])
def test_invitation_needs_an_address(invite_server: Server, address: str) -> None:
    done = invite_server.sso("user", "invite", address, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ADDRESS: must be an e-mail address such as name@example.com" in done.stderr


def test_expired_invitation_is_refused(newcomer: Browser, invite_server: Server) -> None:
    address = new_address()
    link = invite(invite_server, address)
    newcomer.get(link)
    query(invite_server, "UPDATE mailed_links SET expires = now() WHERE data ->> 'login' = $1", address)
    assert complete(newcomer).status_code == 410
    assert query(invite_server, "SELECT 1 FROM users WHERE login = $1", address) == []


def test_invitation_of_an_address_that_has_an_account_by_now(newcomer: Browser, invite_server: Server) -> None:
    address = new_address()
    newcomer.get(invite(invite_server, address))
    new_user(invite_server, login=address)
    assert complete(newcomer).status_code == 409


def test_invitation_is_mailed_if_a_mail_server_is_configured(postgres_server: Postgres, tmp_path: Path) -> None:
    address = new_address()
    with mail_server("smtp") as mails:
        settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_REGISTRATION": "invite"}
        with running(tmp_path, **settings, SSO_SMTP_URL=f"smtp://localhost:{mails.port}") as server:
            done = server.sso("user", "invite", address, "--lang", "de")
            assert done.stderr.strip() == f"mailed to {address}"
            assert until(lambda: mails.mails)
    message = message_from_string(mails.mails[0], policy=policy.default)
    assert message["To"] == address
    assert str(message["Subject"]).startswith("Du bist zu")
    assert done.stdout.strip() in mails.mails[0].replace("=\n", "").replace("=3D", "=")
