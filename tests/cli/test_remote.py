"""Commands on a server: sign-in, the same commands as on its machine, and what is stored about the sign-in."""

import itertools
import json
import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cli.conftest import CommandResult, run_in_process
from tests.kit.browser import Browser
from tests.kit.builders import PASSWORD
from tests.kit.forked_program import ForkedProcess
from tests.kit.server import Server, clean_environment

_numbers = itertools.count(1)
ROOT = "remote-root@example.com"


@pytest.fixture(scope="module")
def administered(server: Server) -> Server:
    service = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": 1}
    browser = {"profile": "oidc", "public": True, "first_party": True, "redirect_uris": ["http://127.0.0.1/callback"]}
    server.apply(
        {
            "users": [{"login": ROOT, "password": PASSWORD, "user_id": "780001", "email_verified": True}],
            "clients": [
                {"client_id": "remote", "client_secret": "a secret of the remote client", **service},
                {"client_id": "sso-cli", **browser},
            ],
            "permissions": [{"user_id": "780001", "application_id": 1, "data": {"roles": ["root"]}}],
        }
    )
    return server


class Operator:
    """A person at another machine, with a configuration folder of their own."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.url = server.base_url
        self.folder = folder
        self.file = folder / "sso" / "logins.json"

    def try_sso(self, *arguments: str, stdin: str = "", server: str | None = None) -> CommandResult:
        chosen = ("--server", server or self.url)
        return run_in_process(*chosen, *arguments, stdin=stdin, XDG_CONFIG_HOME=str(self.folder))

    def sso(self, *arguments: str, stdin: str = "") -> str:
        return self.try_sso(*arguments, stdin=stdin).output

    def failure(self, *arguments: str, stdin: str = "") -> str:
        done = self.try_sso(*arguments, stdin=stdin)
        assert done.code in (1, 2), done.out
        assert "Traceback" not in done.err
        return done.err


@pytest.fixture(scope="module")
def operator(administered: Server, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    """Signed in with a password."""
    operator = Operator(administered, tmp_path_factory.mktemp("operator"))
    operator.sso("login", "--login", ROOT, "--password-stdin", stdin=f"{PASSWORD}\n")
    return operator


def local(server: Server, *arguments: str) -> str:
    """The output of a command on the machine of the service."""
    return run_in_process(*arguments, **server.settings).output


def new_login() -> str:
    return f"remote{next(_numbers)}@example.com"


def test_tokens_are_stored_for_this_user_only_and_passwords_not_at_all(operator: Operator) -> None:
    assert stat.S_IMODE(operator.file.stat().st_mode) == 0o600
    assert PASSWORD not in operator.file.read_text()


def test_user_commands_act_on_the_server(operator: Operator, administered: Server) -> None:
    login = new_login()
    user_id = operator.sso("user", "add", login, "--password-stdin", stdin="a password for tests\n").split()[-1]
    assert local(administered, "user", "show", user_id, "--tsv") == operator.sso("user", "show", login, "--tsv")
    assert login in operator.sso("user", "list", "--search", login)
    operator.sso("user", "disable", login)
    assert json.loads(local(administered, "user", "show", login, "--json"))["disabled"] is True
    operator.sso("user", "enable", login)
    operator.sso("user", "set-password", login, "--password-stdin", stdin="another password for tests\n")
    operator.sso("user", "end-sessions", login)
    operator.sso("user", "reset-2fa", login)
    assert "will be erased on" in operator.sso("user", "delete", login, "--yes")
    assert f"{login} is kept" in operator.sso("user", "restore", login)


def test_client_commands_act_on_the_server(operator: Operator, administered: Server) -> None:
    added = operator.sso("client", "add", "remote-shop", "--profile", "oidc", "--host", "shop.example.com")
    assert "client_secret" in added
    operator.sso("client", "set", "remote-shop", "--name", "Shop")
    assert "Shop" in operator.sso("client", "list")
    shown = json.loads(operator.sso("client", "show", "remote-shop"))
    assert (shown["name"], shown["secrets"], "client_secret" in shown) == ("Shop", 1, False)
    assert "client_secret" in operator.sso("client", "rotate-secret", "remote-shop", "--overlap", "1h")
    operator.sso("client", "rotate-secret", "remote-shop", "--finish")
    operator.sso("client", "disable", "remote-shop")
    assert json.loads(local(administered, "client", "show", "remote-shop"))["disabled"] is True


def test_permissions_and_audit_trail_are_read_from_the_server(operator: Operator, administered: Server) -> None:
    arguments = ("perm", "explain", ROOT, "can_manage_users")
    assert operator.sso(*arguments) == local(administered, *arguments)
    assert operator.sso("perm", "list", ROOT) == local(administered, "perm", "list", ROOT)
    login = new_login()
    operator.sso("user", "add", login, "--password-stdin", stdin="a password for tests\n")
    assert "user.create" in operator.sso("audit", "--user", ROOT, "--limit", "5")


def test_state_is_applied_tried_out_and_exported_on_the_server(operator: Operator, administered: Server) -> None:
    login, again = new_login(), ("created 0, changed 0, unchanged 1\n", "created 1, changed 0, unchanged 0\n")
    document = json.dumps({"users": [{"login": login, "nick": "Ann"}]})
    assert "would create 1, change 0" in operator.sso("apply", "--dry-run", "-", stdin=document)
    assert operator.sso("apply", "-", stdin=document) == again[1]
    assert operator.sso("apply", "-", stdin=document) == again[0]
    tried = json.loads(operator.sso("apply", "--dry-run", "--json", "-", stdin=document))
    assert (tried["unchanged"], tried["total"]) == (1, 0)
    assert "users[0].nick" in operator.failure("apply", "-", stdin=json.dumps({"users": [{"login": login, "nick": 1}]}))
    exported = json.loads(operator.sso("export"))
    assert login in {user["login"] for user in exported["users"]}
    assert exported == json.loads(local(administered, "export"))


def test_administrator_is_added_on_the_server(operator: Operator, administered: Server) -> None:
    login = new_login()
    operator.sso("user", "add", login, "--admin", "--password-stdin", stdin="a password for tests\n")
    assert local(administered, "perm", "list", login, "--type", "roles").split() == ["root"]


def test_errors_of_the_server_are_one_line(operator: Operator) -> None:
    assert operator.failure("user", "show", "nobody@example.com") == "sso: there is no user nobody@example.com\n"
    login = new_login()
    operator.sso("user", "add", login, "--password-stdin", stdin="a password for tests\n")
    again = operator.failure("user", "add", login, "--password-stdin", stdin="a password for tests\n")
    assert again == "sso: there is already a user with this login or user id\n"


@pytest.mark.parametrize("arguments", [("backup", "x.tar"), ("key", "reseal"), ("serve",), ("migrate",)])
def test_commands_that_need_the_machine_of_the_service_say_so(operator: Operator, arguments: tuple[str, ...]) -> None:
    assert "works only on the machine of the service" in operator.failure(*arguments)


def test_key_that_signs_is_not_retired(operator: Operator) -> None:
    keys = [json.loads(line) for line in operator.sso("key", "list", "--json").splitlines()]
    signing = next(key["kid"] for key in keys if key["state"] == "signs")
    assert "this is the key that signs" in operator.failure("key", "retire", signing)


def test_last_names_the_server_of_the_last_login(operator: Operator) -> None:
    done = operator.try_sso("user", "list", "--limit", "1", server="last")
    assert done.code == 0, done.err


def test_login_and_password_may_come_from_standard_input(administered: Server, tmp_path: Path) -> None:
    for arguments, lines in (((), f"{ROOT}\n{PASSWORD}\n"), ((ROOT,), f"{PASSWORD}\n")):
        (folder := tmp_path / str(len(arguments))).mkdir()
        operator = Operator(administered, folder)
        assert operator.sso("login", *arguments, stdin=lines).startswith("signed in to ")
        assert ROOT in operator.sso("user", "list", "--search", ROOT)
    nobody = Operator(administered, tmp_path)
    assert nobody.failure("login", stdin="") == "sso: e-mail: expected on standard input\n"
    assert nobody.failure("login", ROOT, stdin="\n") == "sso: password: expected on standard input\n"


def test_without_a_sign_in_the_command_says_how_to_sign_in(administered: Server, tmp_path: Path) -> None:
    stranger = Operator(administered, tmp_path)
    assert f"run `sso --server {stranger.url} login`" in stranger.failure("user", "list")
    assert "invalid credentials" in stranger.failure("login", "--login", ROOT, "--password-stdin", stdin="wrong\n")
    assert not stranger.file.exists()


def test_service_client_signs_in_and_out(administered: Server, tmp_path: Path) -> None:
    program = Operator(administered, tmp_path)
    program.sso("login", "--client-id", "remote", "--secret-stdin", stdin="a secret of the remote client\n")
    assert "a secret of the remote client" not in program.file.read_text()
    assert ROOT in program.sso("user", "list", "--search", ROOT)
    assert program.sso("logout") == f"signed out of {program.url}\n"
    assert "login" in program.failure("user", "list")


def test_expired_jwt_is_renewed_and_stored(operator: Operator) -> None:
    stored = json.loads(operator.file.read_text())
    stored["servers"][operator.url]["jwt_ends"] = 1
    operator.file.write_text(json.dumps(stored))
    operator.sso("user", "list", "--limit", "1")
    renewed = json.loads(operator.file.read_text())["servers"][operator.url]
    assert renewed["jwt_ends"] > 1
    assert renewed["token"] != stored["servers"][operator.url]["token"]


def test_passwords_are_not_sent_without_tls(tmp_path: Path, administered: Server) -> None:
    done = Operator(administered, tmp_path).try_sso("login", server="http://sso.example.com")
    assert (done.code, "expected https" in done.err) == (2, True)


def test_sign_in_with_a_browser(administered: Server, tmp_path: Path) -> None:
    operator = Operator(administered, tmp_path)
    environment = clean_environment(XDG_CONFIG_HOME=str(tmp_path))
    program = ForkedProcess(["--server", operator.url, "login", "--browser"], env=environment, cwd=tmp_path)
    assert program.stdout is not None
    with program.stdout, Browser(administered) as browser:
        address = program.stdout.readline().strip()
        browser.get(address)
        answer = browser.submit("/login", login=ROOT, password=PASSWORD)
        browser.follow(answer)
        assert f"port {urlsplit(parse_qs(urlsplit(address).query)['redirect_uri'][0]).port}" in browser.page.text
        action = urlsplit(answer.headers["Location"]).path
        location = browser.submit(action, decision="allow").headers["Location"]
        assert "You are signed in" in browser.get(location).text
        assert program.stdout.read() == f"signed in to {operator.url}\n"
        assert program.wait(60) == 0
    assert ROOT in operator.sso("user", "list", "--search", ROOT)
    stored = json.loads(operator.file.read_text())
    stored["servers"][operator.url]["jwt_ends"] = 1
    renewed = []
    for _ in range(2):  # the second time as if the answer to the first refresh had been lost
        operator.file.write_text(json.dumps(stored))
        operator.sso("user", "list", "--limit", "1")
        renewed.append(json.loads(operator.file.read_text())["servers"][operator.url])
    tokens = [login["refresh_token"] for login in renewed]
    assert tokens[0] == tokens[1] != stored["servers"][operator.url]["refresh_token"]
    operator.sso("logout")
