"""The program: results of each command, exit codes 0, 1 and 2, and one line for every error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import argon2
import click
import orjson
import pytest

from sso.core.encryption import Keyring, MasterKey
from sso.db.standalone import fetch_value
from tests.cli.conftest import CommandResult, run_in_process
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.commands import COMMANDS
from tests.kit.postgres import Postgres
from tests.kit.server import DEFAULT_SETTINGS, QUICK, SINGLE_NODE, Server, run_sso

UNREACHABLE = "postgresql://sso:hunter2@127.0.0.1:1/none"


class Program:
    """Runs the program in this process, which saves the second that a new process needs for imports."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.dsn = dsn
        self.settings = (
            QUICK | SINGLE_NODE | DEFAULT_SETTINGS | {"SSO_DATA_DIR": str(folder / "data"), "SSO_DATABASE_URL": dsn}
        )
        (folder / "data").mkdir(mode=0o700)

    def __call__(self, *arguments: str, stdin: str | bytes = "", **settings: str) -> CommandResult:
        return run_in_process(*arguments, stdin=stdin, **(self.settings | settings))

    def ok(self, *arguments: str, stdin: str | bytes = "", **settings: str) -> str:
        result = self(*arguments, stdin=stdin, **settings)
        assert (result.code, result.err) == (0, ""), result
        return result.out

    def value(self, sql: str) -> Any:
        return fetch_value(self.dsn, sql)

    def process(self, *arguments: str, stdin: str = "", **settings: str) -> CommandResult:
        """Runs the program in its own process."""
        result = run_sso(self.folder, *arguments, stdin=stdin, **(self.settings | settings))
        return CommandResult(result.returncode, result.stdout, result.stderr)


@pytest.fixture
def run(dsn: str, tmp_path: Path) -> Program:
    return Program(tmp_path, dsn)


@pytest.fixture(scope="module")
def shared(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A program with a database that tests share and do not change."""
    dsn = postgres_server.fresh()
    yield Program(tmp_path_factory.mktemp("cli"), dsn)
    postgres_server.drop(dsn)


@pytest.fixture(scope="module")
def beside(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A program beside a running service, which answers it at once. Tests do not change its database."""
    program = Program(tmp_path_factory.mktemp("cli"), server.settings["SSO_DATABASE_URL"])
    program.settings = server.settings
    return program


# Words that the help of a command must contain.
HELP_KEYWORDS = {
    (): ["serve", "apply", "export", "migrate", "user", "key", "doctor", "--config", "SSO_", "http://127.0.0.1:8000"],
    ("serve",): ["SIGTERM", "SIGHUP"],
    ("apply",): ["JSON", "standard input", "as a whole or not at all"],
    ("export",): ["sso apply", "Passwords"],
    ("migrate",): ["version"],
    ("doctor",): ["database", "keys", "clock"],
    ("user",): ["add", "list", "show", "disable", "enable", "set-password", "reset-2fa", "unblock-2fa", "end-sessions"],
    ("user", "add"): ["e-mail", "--password-stdin", "--user-id"],
    ("user", "list"): ["--search", "--limit", "--offset"],
    ("user", "show"): ["JSON"],
    ("user", "disable"): ["end at once"],
    ("user", "enable"): ["again"],
    ("user", "set-password"): ["--password-stdin", "end at once"],
    ("user", "reset-2fa"): ["second factors"],
    ("user", "unblock-2fa"): ["20 wrong codes"],
    ("user", "end-sessions"): ["password stays"],
    ("key",): ["list", "rotate", "retire", "master", "reseal"],
    ("key", "list"): ["signing keys"],
    ("key", "rotate"): ["published", "--alg", "RS256", "ES256", "EdDSA", "30 days"],
    ("key", "retire"): ["invalid"],
    ("key", "master"): ["SSO_SECRET_KEY"],
    ("key", "reseal"): ["--drop-old", "SSO_SECRET_KEY"],
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_of_every_command_has_its_keywords(command: tuple[str, ...], shared: Program) -> None:
    text = " ".join(shared.ok(*command, "--help", SSO_DATABASE_URL=UNREACHABLE).split())
    assert text.startswith(f"Usage: {' '.join(('sso', *command))} ")
    for word in HELP_KEYWORDS.get(command, []):
        assert word in text
    assert COMMANDS[command].help
    for parameter in COMMANDS[command].params:
        assert isinstance(parameter, click.Argument) or parameter.to_info_dict()["help"], parameter.name


def test_commands_with_expected_keywords_exist() -> None:
    assert set(HELP_KEYWORDS) <= set(COMMANDS)


def test_version_option_prints_the_version(shared: Program) -> None:
    assert shared.ok("--version").startswith("sso, version ")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nope"],
        ["--nope"],
        ["user"],
        ["user", "nope"],
        ["user", "add"],
        ["user", "show", "a", "b"],
        ["user", "list", "--limit", "x"],
        ["user", "list", "--limit", "-1"],
        ["user", "list", "--offset", "-1"],
        ["user", "list", "--limit", "9" * 30],
        ["user", "show", "\udcff"],
        ["user", "list", "--search", "\udcff"],
        ["key", "retire", "\udcff"],
        ["key", "rotate", "--alg", "HS256"],
        ["apply"],
        ["--config"],
    ],
    ids=lambda arguments: " ".join(arguments).encode("ascii", "backslashreplace").decode(),
)
def test_wrong_usage_exits_with_code_2(arguments: list[str], shared: Program) -> None:
    result = shared(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert "Error: " in result.err or "Usage: sso" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "command", [["user", "list"], ["apply", "-"], ["export"], ["migrate"], ["key", "list"], ["serve"]]
)
def test_invalid_settings_are_reported_in_one_line(command: list[str], shared: Program) -> None:
    assert shared(*command, SSO_NOPE="x").failed_with("SSO_NOPE: there is no such setting")
    assert shared(*command, SSO_WORKERS="many").failed_with("SSO_WORKERS: ")
    assert shared("--config", "/missing.toml", *command).failed_with("cannot read /missing.toml")


@pytest.mark.parametrize("command", [["user", "list"], ["export"], ["migrate"]])
def test_unreachable_database_is_reported_without_its_password(command: list[str], shared: Program) -> None:
    result = shared(*command, SSO_DATABASE_URL=UNREACHABLE, SSO_START_WAIT_S="0")
    assert result.failed_with("the database cannot be reached", "refuses connections", "SSO_DATABASE_URL")
    assert "hunter2" not in result.err


def test_path_that_cannot_be_used_is_reported_in_one_line(shared: Program) -> None:
    name = "x" * 300
    assert shared("backup", name, "--no-keys").failed_with(f"{name}: File name too long")


def test_newer_database_schema_is_reported_in_one_line(run: Program) -> None:
    run.value("UPDATE alembic_version SET version_num = '9999'")
    run.value("UPDATE schema_compatibility SET oldest_program = '9999'")
    assert run("user", "list").failed_with("the database is at version 9999, which needs a newer program")


@pytest.mark.parametrize(
    "command", ["show", "disable", "enable", "set-password", "reset-2fa", "unblock-2fa", "end-sessions"]
)
def test_unknown_user_is_reported_in_one_line(command: str, beside: Program) -> None:
    assert beside("user", command, "nobody@example.com").failed_with("there is no user nobody@example.com")


@pytest.mark.parametrize("login", ["12345", "", "9" * 30, "ünï", "%"])
def test_user_show_accepts_any_text_as_login(login: str, beside: Program) -> None:
    assert beside("user", "show", login).failed_with(f"there is no user {login}")


def test_invalid_master_key_is_reported_with_its_source(shared: Program, tmp_path: Path) -> None:
    add = ("client", "add", "keyless", "--profile", "oidc", "--host", "shop.example.com")
    assert shared(*add, SSO_SECRET_KEY="hunter2").failed_with("SSO_SECRET_KEY: ")
    assert "hunter2" not in shared(*add, SSO_SECRET_KEY="hunter2").err
    (tmp_path / "secret.key").write_text(MasterKey.generate().text())
    (tmp_path / "secret.key").chmod(0o644)
    assert shared(*add, SSO_DATA_DIR=str(tmp_path)).failed_with(str(tmp_path / "secret.key"), "chmod 600")


def test_config_option_reads_settings_from_a_file(run: Program, tmp_path: Path) -> None:
    file = tmp_path / "sso.toml"
    file.write_text("".join(f"{name} = '{value}'\n" for name, value in run.settings.items()))
    run.settings = {}
    run.ok("--config", str(file), "user", "add", "ann@example.com")
    assert run.value("SELECT login FROM users") == "ann@example.com"


def test_user_add_reads_the_password_from_standard_input(run: Program) -> None:
    out = run.ok("user", "add", "Ann@example.com", "--password-stdin", "--verified", stdin=f"{PASSWORD}\nmore\n")
    assert out == "user_id 1000\n"
    argon2.PasswordHasher().verify(run.value("SELECT password_hash FROM users"), PASSWORD)
    assert run.value("SELECT email_verified FROM users")
    assert run.value("SELECT nick FROM users") == "Ann"
    again = run("user", "add", "ANN@example.com", "--password-stdin", stdin="x\n")
    assert again.failed_with("there is already a user with this login or user id")


def test_user_add_generates_a_password_without_a_terminal(run: Program) -> None:
    word, password, *rest = run.ok("user", "add", "ann@example.com", "--user-id", "77", "--nick", "Anna").split()
    assert (word, rest) == ("password", ["user_id", "77"])
    argon2.PasswordHasher().verify(run.value("SELECT password_hash FROM users"), password)
    assert run("user", "add", "bob@example.com", "--user-id", "77").failed_with(
        "already a user with this login or user id"
    )
    word, other, *_ = run.ok("user", "set-password", "77").split()
    assert word == "password"
    assert other != password
    argon2.PasswordHasher().verify(run.value("SELECT password_hash FROM users"), other)


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (["add", "no-address"], "", "LOGIN: must be an e-mail address"),
        (["add", "\udcff@example.com"], "", "LOGIN: "),
        (["add", "a@example.com", "--user-id", "007"], "", "--user-id: must be a decimal number"),
        (["add", "a@example.com", "--nick", "x" * 2000], "", "nick: "),
        (["add", "a@example.com", "--password-stdin"], "", "expected the password on standard input"),
        (["add", "a@example.com", "--password-stdin"], "\n", "expected the password on standard input"),
        (["add", "a@example.com", "--password-stdin"], b"\xff\xfe\n", "not UTF-8"),
        (["add", "a@example.com", "--password-stdin"], "x" * 1025, "at most 1024 characters"),
        (["set-password", "a@example.com", "--password-stdin"], "x" * 1025, "at most 1024 characters"),
    ],
)
def test_invalid_arguments_of_user_commands_are_reported_in_one_line(
    beside: Program, arguments: list[str], stdin: str | bytes, words: str
) -> None:
    assert beside("user", *arguments, stdin=stdin).failed_with(words)
    assert beside.value("SELECT count(*) FROM users") == 0


@pytest.mark.parametrize(
    "command",
    [
        "client add shop --profile oidc --host shop.example.com --secret-stdin",
        "idp add google --kind oidc --issuer https://a.example --client-id 1 --client-secret-stdin",
        "webhook add https://a.example/hook --secret-stdin",
        "--server https://a.example login --client-id shop --secret-stdin",
    ],
)
def test_secret_that_is_not_utf8_is_reported_in_one_line(beside: Program, command: str) -> None:
    assert beside(*command.split(), stdin=b"\xff\xfe\n").failed_with("secret on standard input is not UTF-8")


def test_user_list_searches_and_user_show_prints_json(run: Program) -> None:
    document = {
        "users": [
            {
                "user_id": "5",
                "login": "ann@example.com",
                "nick": "Ann 🎮",
                "totp_secret": TOTP_SECRET,
                "email_2fa": True,
            },
            {"user_id": "41", "login": "b_b@example.com", "nick": "Bob", "password": PASSWORD, "disabled": True},
            {"user_id": "7", "login": "bxb@example.com", "nick": "Eve"},
        ]
    }
    run.ok("apply", "-", stdin=orjson.dumps(document))
    lines = run.ok("user", "list").splitlines()
    ann, eve, bob = (
        "5\tann@example.com\tAnn 🎮\ttotp,email",
        "7\tbxb@example.com\tEve\t",
        "41\tb_b@example.com\tBob\tdisabled",
    )
    assert lines == [ann, bob, eve]
    assert run.ok("user", "list", "--search", "ANN@").splitlines() == [ann]
    assert run.ok("user", "list", "--search", "b_b").splitlines() == [bob]
    assert run.ok("user", "list", "--search", "41").splitlines() == [bob]
    assert run.ok("user", "list", "--search", "%") == ""
    assert run.ok("user", "list", "--search", "eve").splitlines() == [eve]
    assert run.ok("user", "list", "--limit", "1", "--offset", "1").splitlines() == [bob]
    assert run.ok("user", "list", "--limit", "0") == ""
    shown = orjson.loads(run.ok("user", "show", "B_B@example.com"))
    assert shown == orjson.loads(run.ok("user", "show", "41"))
    assert (shown["login"], shown["disabled"], shown["second_factors"]) == ("b_b@example.com", True, [])
    assert orjson.loads(run.ok("user", "show", "5"))["second_factors"] == ["totp", "email"]
    text = run.ok("user", "show", "41") + run.ok("user", "show", "5")
    for secret in ("argon2", "sealed", "hash", TOTP_SECRET):
        assert secret not in text


def test_user_disable_enable_end_sessions_and_set_password(run: Program) -> None:
    part = {
        "user_id": "5",
        "login": "ann@example.com",
        "password": "old",
        "totp_secret": TOTP_SECRET,
        "email_2fa": True,
    }
    run.ok("apply", "-", stdin=orjson.dumps({"users": [part]}))
    tokens = "SELECT count(*) FROM session_tokens"

    def give_token() -> None:
        run.value("INSERT INTO session_tokens VALUES ('\\x01', '5', 'long', NULL, now() + interval '1 day', 'x')")
        assert run.value(tokens) == 1

    give_token()
    assert run.ok("user", "disable", "Ann@example.com") == "ann@example.com is disabled\n"
    assert (run.value("SELECT disabled FROM users"), run.value(tokens)) == (True, 0)
    assert run.ok("user", "enable", "5") == "ann@example.com is enabled\n"
    assert not run.value("SELECT disabled FROM users")

    give_token()
    assert run.ok("user", "end-sessions", "5") == "ann@example.com is signed out everywhere\n"
    assert run.value(tokens) == 0
    argon2.PasswordHasher().verify(run.value("SELECT password_hash FROM users"), "old")

    give_token()
    run.ok("user", "set-password", "5", "--password-stdin", stdin="the new one\r\n")
    assert run.value(tokens) == 0
    argon2.PasswordHasher().verify(run.value("SELECT password_hash FROM users"), "the new one")

    assert run.ok("user", "reset-2fa", "5") == "ann@example.com signs in with the password alone\n"
    assert run.value("SELECT totp_sealed IS NULL AND NOT email_2fa FROM users")


def test_applying_an_export_changes_nothing(run: Program, tmp_path: Path) -> None:
    document = {
        "users": [{"login": "ann@example.com", "password": PASSWORD, "nick": "Ünï 🎮", "totp_secret": TOTP_SECRET}],
        "clients": [{"client_id": "shop", "client_secret": "a-secret-of-the-shop"}],
    }
    file = tmp_path / "state.json"
    file.write_bytes(orjson.dumps(document))
    assert run.ok("apply", str(file)) == "created 2, changed 0, unchanged 0\n"
    assert run.ok("apply", str(file)) == "created 0, changed 0, unchanged 2\n"
    exported = run.ok("export")
    assert {"users", "clients"} <= orjson.loads(exported).keys()
    for secret in (PASSWORD, TOTP_SECRET, "a-secret-of-the-shop", "argon2"):
        assert secret not in exported
    assert run.ok("apply", "-", stdin=exported).startswith("created 0, changed 0, ")
    assert run.ok("apply", "-", stdin='{"users": [{"login": "ann@example.com", "nick": "Anna"}]}') == (
        "created 0, changed 1, unchanged 0\n"
    )


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"users": [{"login": "a@example.com"}, {"login": 5}]}', "1:41: users[1].login: "),
        ('{"users": [{"login": "a@example.com"}], "projects": [{"title": "/"}]}', "1:55: projects[0].title: "),
        ('{"nope": []}', "1:2: nope: unknown section"),
        ('{"users": [', "1:12: this is not valid JSON"),
        ('{"users": [], "users": []}', "duplicate key"),
        ("[]", "one JSON object"),
        ('{"users": [{"login": "a@example.com", "meta": {"n": 18446744073709551616}}]}', "64 bits"),
        ('{"users": [{"login": "a@example.com", "nick": "\\u0000"}]}', "NUL"),
    ],
)
def test_invalid_document_is_reported_with_its_location_and_changes_nothing(
    shared: Program, tmp_path: Path, document: str, words: str
) -> None:
    file = tmp_path / "state.json"
    file.write_text(document)
    assert shared("apply", str(file)).failed_with(f"{file}:1:", words)
    assert shared("apply", "-", stdin=document).failed_with(words)
    assert shared.value("SELECT count(*) FROM users") == 0


def test_unreadable_document_is_reported_in_one_line(shared: Program, tmp_path: Path) -> None:
    assert shared("apply", str(tmp_path / "missing.json")).failed_with("cannot read", "missing.json")
    assert shared("apply", str(tmp_path)).failed_with("cannot read", str(tmp_path))


def test_document_may_be_larger_than_a_request_body(run: Program) -> None:
    part = {"login": "ann@example.com", "meta": {"numbers": list(range(100_000))}}
    assert run.ok("apply", "-", stdin=orjson.dumps({"users": [part]})) == "created 1, changed 0, unchanged 0\n"
    assert run.ok("apply", "-", stdin=run.ok("export")).startswith("created 0, changed 0, ")


def listed(run: Program) -> list[list[str]]:
    """The signing keys: id, algorithm, state."""
    return [line.split("\t") for line in run.ok("key", "list").splitlines()]


def test_key_list_rotate_and_retire(run: Program) -> None:
    keys = {line[1]: line for line in listed(run)}
    first = keys["RS256"][0]
    assert {algorithm: state for algorithm, (_, _, state) in keys.items()} == {
        "RS256": "signs",
        "ES256": "signs ID tokens of clients that chose it",
        "EdDSA": "signs ID tokens of clients that chose it, and refresh tokens",
    }
    assert run("key", "retire", first).failed_with("this is the key that signs", "sso key rotate")
    assert run("key", "retire", "unknown").failed_with("there is no key unknown in use")

    second, *words = run.ok("key", "rotate", "--alg", "EdDSA").split()
    assert " ".join(words) == "is published and signs in 15 seconds"
    lines = listed(run)
    assert [first, "RS256", "signs"] in lines
    assert lines[-1][:2] == [second, "EdDSA"]
    assert lines[-1][2].startswith("published, signs from 2")

    assert run.ok("key", "retire", first) == f"{first} is retired\n"
    assert run("key", "retire", first).failed_with(f"there is no key {first} in use")
    assert run("key", "retire", second).failed_with("sso key rotate")
    assert {kid: state for kid, _, state in listed(run)}[first].startswith("retired ")
    assert "signs in 15 seconds" in run.ok("key", "rotate", "--alg", "ES256", "--side")
    assert run("key", "rotate", "--side").code == 2


def test_key_master_prints_a_valid_master_key(run: Program) -> None:
    text = run.ok("key", "master", SSO_DATABASE_URL=UNREACHABLE).strip()
    assert text != run.ok("key", "master").strip()
    run.ok("key", "list", SSO_SECRET_KEY=text)
    assert not (run.folder / "data" / "secret.key").exists()


def test_key_reseal_changes_the_master_key_and_drops_the_old_one_when_unused(run: Program) -> None:
    path = run.folder / "data" / "secret.key"
    run.ok("key", "list")  # makes the first signing key
    run.ok("apply", "-", stdin=orjson.dumps({"users": [{"login": "ann@example.com", "totp_secret": TOTP_SECRET}]}))
    (old,) = path.read_text().split()

    # A key that was put into the file by hand, and nothing sealed with it yet.
    Keyring.from_file(path).add_first(MasterKey.generate())
    assert run("key", "reseal", "--drop-old").failed_with("4 values are still sealed with an old key", "sso key reseal")
    assert old in path.read_text()

    # The interrupted change is completed first: a new key is created only when no value needs an old one.
    by_hand = path.read_text().split()[0]
    assert run.ok("key", "reseal") == f"4 values are sealed with the master key {MasterKey.parse(by_hand).id}\n"
    assert path.read_text().split() == [by_hand, old]
    newest = run.ok("key", "reseal").split()
    assert newest[:-1] == ["4", "values", "are", "sealed", "with", "the", "master", "key"]
    assert path.read_text().split()[1:] == [by_hand, old]
    assert run.ok("key", "reseal", "--drop-old") == "only the newest master key is kept\n"
    (kept,) = path.read_text().split()
    assert MasterKey.parse(kept).id == newest[-1]
    assert "signs" in run.ok("key", "list")
    assert run("key", "list").code == 0
    again = {"users": [{"login": "ann@example.com", "totp_secret": TOTP_SECRET}]}
    assert run.ok("apply", "-", stdin=orjson.dumps(again)) == "created 0, changed 0, unchanged 1\n"


def test_key_reseal_with_master_key_in_the_settings(run: Program) -> None:
    old, new = MasterKey.generate(), MasterKey.generate()
    run.ok("key", "list", SSO_SECRET_KEY=old.text())
    both = f"{new.text()},{old.text()}"
    assert run.ok("key", "reseal", SSO_SECRET_KEY=both) == f"3 values are sealed with the master key {new.id}\n"
    assert run("key", "reseal", "--drop-old", SSO_SECRET_KEY=both).failed_with("SSO_SECRET_KEY: change it there")
    run.ok("key", "list", SSO_SECRET_KEY=new.text())
    assert run("key", "reseal", SSO_SECRET_KEY=old.text()).failed_with(f"master key {new.id} is missing")


def test_migrate_shows_the_version_of_a_newer_database_that_the_program_can_use(run: Program) -> None:
    run.value("UPDATE alembic_version SET version_num = '9999'")
    assert run.ok("migrate") == "the database is at version 9999\n"


def test_program_in_its_own_process_has_the_same_results(shared: Program) -> None:
    assert shared.process("user", "list") == (0, "", "")
    assert shared.process("user", "show", "nobody").failed_with("there is no user nobody")
    usage = shared.process("user", "nope")
    assert usage.code == 2
    assert "No such command" in usage.err
    assert shared.process("serve", SSO_BIND="nowhere").failed_with("SSO_BIND: ")


def test_serve_refuses_a_key_file_that_others_can_read(run: Program) -> None:
    path = run.folder / "data" / "secret.key"
    run.ok("key", "list")
    path.chmod(0o644)
    result = run.process("serve", SSO_BIND="127.0.0.1:0", SSO_LOG_LEVEL="error")
    assert result.failed_with(str(path), "mode 644", "chmod 600")


def test_deprecated_name_of_http_server_is_logged(run: Program) -> None:
    result = run.process("serve", SSO_HTTP="lane", SSO_BIND="127.0.0.1:0", SSO_SECRET_KEY="too short")
    assert '"event": "config.value_deprecated"' in result.err
