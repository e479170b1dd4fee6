"""Tables with headers on a terminal, tab-separated lines and JSON for programs."""

import json
import os
from collections.abc import Callable

import pytest

from tests.cli.conftest import Sso
from tests.kit.postgres import execute
from tests.kit.server import Server
from tests.kit.terminal import run_sso_on_terminal

ESC = "\x1b"
Terminal = Callable[..., str]


@pytest.fixture(scope="module")
def environment(server: Server) -> dict[str, str]:
    return server.settings


@pytest.fixture
def terminal(environment: dict[str, str]) -> Terminal:
    """Runs a command on a terminal and returns its output."""

    def run(*arguments: str, **more: str) -> str:
        variables = {"PATH": os.environ["PATH"], "TERM": "xterm", **environment, **more}
        code, output = run_sso_on_terminal(arguments, variables)
        assert code == 0, output
        return output

    return run


@pytest.fixture(scope="module", autouse=True)
def users(environment: dict[str, str]) -> None:
    for number, login, nick in ((1000, "ann@example.com", "Ann"), (1001, "taro@example.com", "日本太郎")):
        execute(
            environment["SSO_DATABASE_URL"],
            f"INSERT INTO users (user_id, login, login_key, nick, password_hash, disabled) "
            f"VALUES ('{number}', '{login}', '{login}', '{nick}', '', {number == 1001})",
        )


def test_list_is_a_table_with_a_header_on_a_terminal(terminal: Terminal) -> None:
    assert terminal("user", "list", NO_COLOR="1").splitlines() == [
        "USER ID  LOGIN             NICK      FLAGS",
        "1000     ann@example.com   Ann       -",
        "1001     taro@example.com  日本太郎  disabled",
    ]


def test_list_is_tab_separated_if_piped(sso: Sso) -> None:
    expected = ["1000\tann@example.com\tAnn\t", "1001\ttaro@example.com\t日本太郎\tdisabled"]
    assert sso("user", "list").lines == expected
    assert sso("user", "list", "--tsv").lines == expected


def test_tsv_option_applies_on_a_terminal(terminal: Terminal) -> None:
    assert terminal("user", "list", "--tsv", "--search", "ann") == "1000\tann@example.com\tAnn\t\n"


def test_json_option_prints_one_object_per_line(sso: Sso, terminal: Terminal) -> None:
    first = {"user_id": "1000", "login": "ann@example.com", "nick": "Ann", "flags": []}
    assert json.loads(sso("user", "list", "--json").lines[0]) == first
    assert json.loads(terminal("user", "list", "--json").splitlines()[0]) == first


def test_colours_are_for_terminals_without_no_color(sso: Sso, terminal: Terminal) -> None:
    assert ESC in terminal("user", "list")
    assert ESC not in terminal("user", "list", NO_COLOR="1")
    assert ESC not in terminal("user", "list", TERM="dumb")
    assert ESC not in sso("user", "list").out


def test_show_prints_fields_on_a_terminal_and_json_elsewhere(sso: Sso, terminal: Terminal) -> None:
    assert "login           ann@example.com\n" in terminal("user", "show", "1000", NO_COLOR="1")
    assert json.loads(sso("user", "show", "1000").out)["login"] == "ann@example.com"
    assert json.loads(terminal("user", "show", "1000", "--json"))["login"] == "ann@example.com"


def test_empty_list_is_announced_on_a_terminal_only(sso: Sso, terminal: Terminal) -> None:
    assert terminal("user", "list", "--search", "nobody") == "none\n"
    assert sso("user", "list", "--search", "nobody") == (0, "", "")


def test_control_characters_in_names_are_escaped(environment: dict[str, str], sso: Sso, terminal: Terminal) -> None:
    """The service refuses such nicknames, but another program may have written them."""
    dsn = environment["SSO_DATABASE_URL"]
    execute(dsn, r"UPDATE users SET nick = E'A\x1b[2Jnn\n9999\tfake' WHERE user_id = '1000'")
    try:
        table = terminal("user", "list", NO_COLOR="1")
        assert r"A\x1b[2Jnn\n9999\tfake" in table
        assert ESC not in table
        assert sso("user", "list").lines[0] == "1000\tann@example.com\t" + r"A\x1b[2Jnn\n9999\tfake" + "\t"
        assert json.loads(sso("user", "list", "--json").lines[0])["nick"] == "A\x1b[2Jnn\n9999\tfake"
    finally:
        execute(dsn, "UPDATE users SET nick = 'Ann' WHERE user_id = '1000'")


@pytest.mark.parametrize("name", ["client", "app", "project", "role", "group", "key"])
def test_lists_have_json(sso: Sso, name: str) -> None:
    arguments = (name, "list")
    lines = sso(*arguments, "--json").lines
    assert len(lines) == len(sso(*arguments).lines)
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_audit_is_a_table_on_a_terminal(sso: Sso, terminal: Terminal) -> None:
    assert sso("client", "add", "shop", "--profile", "oidc", "--host", "shop.example.com").code == 0
    header, *rows = terminal("audit", NO_COLOR="1").splitlines()
    assert header.split() == ["TIME", "OPERATION", "TARGET", "BY", "FROM", "CHANGED"]
    assert any("client.create" in row and "shop" in row for row in rows)


def test_record_as_tsv_has_a_line_for_each_field(sso: Sso, terminal: Terminal) -> None:
    assert "login\tann@example.com" in sso("user", "show", "1000", "--tsv").lines
    assert "login\tann@example.com\n" in terminal("user", "show", "1000", "--tsv")
