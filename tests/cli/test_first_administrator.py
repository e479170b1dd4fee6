"""`sso user add --admin` and `sso role assign` create the first administrator, without a running service."""

import os

from tests.cli.conftest import Sso
from tests.kit.terminal import run_sso_on_terminal

PASSWORD = "Password (empty: generate one): "
REPEAT = "Repeat the password: "


def test_user_add_admin_assigns_the_role_root(sso: Sso) -> None:
    assert sso("user", "add", "--admin", "ann@example.com").code == 0
    assert "can_create_projects" in sso("perm", "list", "ann@example.com").out


def test_user_without_a_role_becomes_the_first_administrator_after_a_confirmation(sso: Sso) -> None:
    assert sso("user", "add", "bob@example.com").code == 0
    asked = sso("role", "assign", "bob@example.com", "root", stdin="")  # there is no answer
    assert asked.code == 1
    assert "nothing is assigned: expected the answer y, or the option --yes" in asked.err
    assert "can_create_projects" not in sso("perm", "list", "bob@example.com").lines
    assert sso("role", "assign", "bob@example.com", "root", "--yes").lines == [
        "bob@example.com has the role root at application 1"
    ]
    assert "can_create_projects" in sso("perm", "list", "bob@example.com").lines


def test_user_add_admin_creates_no_user_if_the_role_cannot_be_assigned(sso: Sso) -> None:
    assert sso("user", "add", "--admin", "first@example.com").code == 0
    assert sso("role", "change", "root", "--app", "1", "--user-limit", "1").code == 0
    audited = sso("audit", "--json").out
    assert sso("user", "add", "--admin", "eve@example.com").failure == "--admin: root can have at most 1 users"
    assert sso("user", "show", "eve@example.com").failure == "there is no user eve@example.com"
    assert sso("audit", "--json").out == audited
    assert sso("role", "change", "root", "--app", "1", "--user-limit", "0").code == 0


def test_user_add_asks_for_the_password_on_a_terminal(environment: dict[str, str]) -> None:
    def add(login: str, *answers: tuple[str, str]) -> tuple[int, list[str]]:
        variables = {"PATH": os.environ["PATH"], "TERM": "dumb", **environment}
        code, output = run_sso_on_terminal(["user", "add", login], variables, answers=answers)
        return code, output.splitlines()

    code, lines = add("generated@example.com", (PASSWORD, ""))
    assert (code, lines[0]) == (0, PASSWORD)
    assert [line.split()[0] for line in lines[1:]] == ["password", "user_id"]
    code, lines = add("typed@example.com", (PASSWORD, "a horse of ours"), (REPEAT, "a horse of ours"))
    assert (code, lines[:2]) == (0, [PASSWORD, REPEAT])
    assert [line.split()[0] for line in lines[2:]] == ["user_id"]
    weak = "sso: password: This is a very common password. Use several words that do not belong together."
    answers = (PASSWORD, "password1"), (REPEAT, "password1")
    assert add("weak@example.com", *answers) == (1, [PASSWORD, REPEAT, weak])
    assert add("different@example.com", (PASSWORD, "a horse"), (REPEAT, "a house")) == (
        1,
        [PASSWORD, REPEAT, "sso: the two passwords differ"],
    )
