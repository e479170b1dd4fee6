"""Test players: each sign-in ends as documented, nobody gains rights by them, and without the setting none works."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyotp
import pytest

from sso.accounts.errors import InvalidCredentials
from sso.accounts.test_players import hooks, outcomes
from sso.accounts.test_players.setting import check_test_player_setting
from sso.cli.first_administrator import has_users
from sso.config import ConfigError, Settings, load
from sso.core.encryption import Keyring
from sso.core.field_errors import FieldError
from sso.core.net import parse_address
from sso.core.setting_values import SecretText
from sso.core.test_players import EXAMPLE_PASSWORD, PUBLIC_PASSWORD, TEST_PLAYERS
from sso.db.database import Database
from sso.services import build
from tests.conftest import WITHOUT_LIMITS
from tests.kit import postgres
from tests.kit.browser import Browser, query
from tests.kit.mailbox import path_of, wait_for_mails
from tests.kit.password_reset import ask_for_link, mailed_link
from tests.kit.server import QUICK, Server, run_sso, running

LOGIN = "/proxy/api/login"
PASSWORD = "known to developers"
SETTINGS = {"SSO_TEST_PLAYER_PASSWORD": PASSWORD, "SSO_WORKERS": "1", "SSO_DATABASE_POOL": "5"}


@pytest.fixture(scope="module")
def server(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    settings = QUICK | WITHOUT_LIMITS | SETTINGS | {"SSO_DATABASE_URL": dsn}
    with running(tmp_path_factory.mktemp("server"), **settings) as server:
        yield server
    postgres_server.drop(dsn)


def sign_in(server: Server, name: str, **fields: str) -> tuple[int, dict[str, Any]]:
    with server.client() as http:
        request = {"login": f"{name}@player.test", "password": PASSWORD, "factor": "device", **fields}
        answer = http.post(LOGIN, json=request)
    return answer.status_code, answer.json()


def audit_entries(server: Server) -> int:
    sql = "SELECT count(*) AS count FROM audit WHERE target = ANY ($1)"
    return int(query(server, sql, sorted(TEST_PLAYERS))[0]["count"])


def test_programs_get_the_documented_outcomes(server: Server) -> None:
    assert not has_users(
        server.settings["SSO_DATABASE_URL"]
    )  # so that the operator is still told how to create the first administrator
    assert sign_in(server, "success")[0] == 200
    assert sign_in(server, "unverified")[0] == 200
    status, answer = sign_in(server, "second-factor")
    assert (status, answer["error"], answer["otp"]) == (401, "otp required", ["totp"])
    code = pyotp.TOTP(outcomes.TOTP_SECRET).now()
    assert sign_in(server, "second-factor", otp=code)[0] == 200
    assert sign_in(server, "blocked") == (401, {"status": "ERROR", "error": "invalid credentials"})
    status, answer = sign_in(server, "banned")
    assert (status, answer["error"], answer["ban"]["reason"]) == (403, "banned", "Cheating in a ranked match")
    assert answer["ban"]["until"] == outcomes.BAN_END
    status, answer = sign_in(server, "expired")
    assert (status, answer["error"], answer["otp"]) == (401, "otp required", ["email"])
    mail = wait_for_mails(server, "expired@player.test", "sign-in code")[-1]
    mailed = re.search(r"\b\d{6}\b", mail)
    assert mailed is not None, mail
    assert sign_in(server, "expired", otp=mailed[0])[0] == 401


def test_pages_show_the_documented_outcomes(server: Server) -> None:
    with Browser(server) as browser:
        assert browser.sign_in("blocked@player.test", PASSWORD).status_code == 401
        page = browser.sign_in("banned@player.test", PASSWORD)
        assert (page.status_code, "Cheating in a ranked match" in page.text) == (403, True)
        ask_for_link(browser, "expired@player.test")
        opened = browser.http.get(path_of(mailed_link(server, "expired@player.test")), follow_redirects=True)
        assert "new_password" not in opened.text
    with Browser(server) as browser:
        browser.sign_in("unverified@player.test", PASSWORD)
        assert "Not verified" in browser.open_account().text


def test_test_player_may_have_roles_of_games_and_is_never_an_administrator(server: Server) -> None:
    server.apply({"applications": [{"application_id": 40, "name": "Tanks"}], "roles": {"40": [{"name": "tester"}]}})
    record = {"user_id": "success@player.test", "application_id": 40, "data": {"roles": ["tester"]}}
    server.apply({"permissions": [record]})
    with pytest.raises(FieldError, match="test players can have no administrative rights"):
        server.apply({"permissions": [record | {"application_id": 1, "data": {"roles": ["root"]}}]})
    sql = "INSERT INTO role_assignments (user_id, application_id, name, position) VALUES ($1, 1, 'root', 1)"
    query(server, sql, outcomes.SUCCESS.user_id)  # as a program of an older version might have done
    _, answer = sign_in(server, "success")
    headers = {"Authorization": f"Bearer {answer['jwt']}", "Factor": "device"}
    with server.client() as http:
        assert http.get("/api/admin/users", headers=headers).status_code == 403
    with Browser(server) as browser:
        assert browser.sign_in("success@player.test", PASSWORD).status_code == 303
        assert browser.get("/console").status_code == 403


def test_start_restores_players_and_without_the_setting_disables_them(server: Server) -> None:
    """A developer who knows the password may change an account, or keep a session of it."""
    with Browser(server) as browser:
        browser.sign_in("unverified@player.test", PASSWORD)
        browser.open_account()
        assert browser.submit("/account/delete", current_password=PASSWORD).status_code == 403
        assert browser.is_signed_in
        _, answer = sign_in(server, "success")
        token = answer["token"]
        server.apply({"users": [{"login": "success@player.test", "password": "another one", "email_2fa": True}]})
        assert sign_in(server, "success")[0] == 401
        entries = audit_entries(server)
        server.stop()
        server.start()
        assert sign_in(server, "success")[0] == 200
        assert audit_entries(server) == entries + 1  # nothing is written about those that were not changed
        assert browser.is_signed_in
        server.stop()
        password = server.settings.pop("SSO_TEST_PLAYER_PASSWORD")
        server.start()
        assert [sign_in(server, player.name)[0] for player in outcomes.OUTCOMES] == [401] * 7
        assert not browser.is_signed_in
        with server.client() as http:
            assert http.post(LOGIN, json={"token": token}).status_code == 401
        server.stop()
        server.settings["SSO_TEST_PLAYER_PASSWORD"] = password
        server.start()
        assert sign_in(server, "success")[0] == 200


async def test_slow_player_waits_without_a_connection(
    settings: Settings, database: Database, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[tuple[int, int]] = []

    async def sleep(seconds: int) -> None:
        waits.append((seconds, database.busy_connections))

    monkeypatch.setattr(hooks, "sleep", sleep)
    services = build(replace(settings, test_player_password=SecretText(PASSWORD)), database, keyring)
    await services.test_players.create(PASSWORD)
    address = parse_address("127.0.0.1")
    await services.password_login.check_password("success@player.test", PASSWORD, address)
    with pytest.raises(InvalidCredentials):  # strangers cannot keep requests open
        await services.password_login.check_password("slow@player.test", "a guess", address)
    assert waits == []
    await services.password_login.check_password("Slow@Player.test", PASSWORD, address)
    assert waits == [(outcomes.SLOW_S, 0)]


def test_public_password_is_for_this_machine_only(tmp_path: Path) -> None:
    public = {"SSO_TEST_PLAYER_PASSWORD": PUBLIC_PASSWORD, "SSO_DATA_DIR": str(tmp_path)}
    localhost = {"SSO_BASE_URL": "http://localhost:8000"}
    assert load(None, public).test_player_password is not None
    assert load(None, public | localhost | {"SSO_BIND": "[::1]:8000,unix:/run/sso.sock"}).test_player_password
    for reachable in (
        {"SSO_BASE_URL": "https://sso.example.com"},
        {"SSO_BIND": "0.0.0.0:8000"},
        localhost | {"SSO_BIND": "0.0.0.0:8000"},
        localhost | {"SSO_BIND": "127.0.0.1:8000,[::]:8001"},
        localhost | {"SSO_TRUSTED_PROXIES": "127.0.0.1"},
        localhost | {"SSO_BIND": "0.0.0.0:8000", "SSO_TEST_PLAYER_PASSWORD": f" {PUBLIC_PASSWORD.title()}"},
    ):
        with pytest.raises(ConfigError, match="SSO_TEST_PLAYER_PASSWORD: this password is public"):
            load(None, public | reachable)


@pytest.mark.parametrize(
    ("password", "text"),
    [
        ("short", "must have 12-256 characters"),
        ("x" * 257, "must have 12-256 characters"),
        ("aaaaaaaaaaaa", "Repeated letters and words are easy to guess"),
        ("password1234", "easy to guess|common"),
        ("success@player.test", "easy to guess"),
        (EXAMPLE_PASSWORD, "this password is public"),
    ],
)
def test_password_must_be_hard_to_guess(tmp_path: Path, password: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"^SSO_TEST_PLAYER_PASSWORD: .*({text})") as error:
        check_test_player_setting(load(None, {"SSO_TEST_PLAYER_PASSWORD": password, "SSO_DATA_DIR": str(tmp_path)}))
    assert password not in str(error.value)


def test_service_does_not_start_with_a_password_that_is_easy_to_guess(tmp_path: Path) -> None:
    result = run_sso(tmp_path, "serve", SSO_DATA_DIR=str(tmp_path / "data"), SSO_TEST_PLAYER_PASSWORD="aaaaaaaaaaaa")
    assert result.returncode != 0
    assert "SSO_TEST_PLAYER_PASSWORD: Repeated letters and words are easy to guess" in result.stderr
