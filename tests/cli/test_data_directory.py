"""The data directory: only some commands create it, and they say so."""

from pathlib import Path

import click
import pytest

from sso.core.encryption import MasterKey
from tests.cli.conftest import CommandResult, run_in_process
from tests.faults import open_folder
from tests.kit.commands import COMMANDS
from tests.kit.server import DEFAULT_SETTINGS, QUICK, SINGLE_NODE, run_sso

CREATE = {("serve",), ("apply",), ("migrate",), ("restore",), ("user", "add")}
OTHERS = [path for path, command in COMMANDS.items() if not isinstance(command, click.Group) and path not in CREATE]


def run(*arguments: str, **settings: str) -> CommandResult:
    return run_in_process(*arguments, **(QUICK | SINGLE_NODE | DEFAULT_SETTINGS | settings))


def arguments_of(command: tuple[str, ...]) -> list[str]:
    """Returns values for the arguments and options that the command requires."""
    arguments = []
    for parameter in COMMANDS[command].params:
        if isinstance(parameter, click.Argument) and parameter.required:
            arguments.append("10")
        elif "--yes" in parameter.opts:
            arguments.append("--yes")
        elif parameter.required:
            arguments += [parameter.opts[0], "10"]
    return arguments


@pytest.mark.parametrize("command", OTHERS, ids=" ".join)
def test_command_does_not_create_a_data_directory(command: tuple[str, ...], tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "data"
    run(*command, *arguments_of(command), SSO_DATA_DIR=str(missing))
    assert not missing.parent.exists()


@pytest.mark.parametrize(
    "command",
    [
        "app list",
        "audit",
        "backup file --no-keys",
        "client add shop --profile oidc --host shop.example.com",
        "client list",
        "doctor",
        "export",
        "key list",
        "key reseal",
        "key rotate",
        "perm list ann@example.com",
        "project list",
        "upgrade-db",
        "user list",
        "user set-password ann@example.com",
        "why 10",
    ],
)
def test_missing_data_directory_is_reported_with_its_setting(command: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert run(*command.split(), SSO_DATA_DIR=str(missing)) == (
        1,
        "",
        f"sso: there is no data directory at {missing}: set SSO_DATA_DIR to the data directory of the service, "
        "or create a new one with `sso serve`\n",
    )


@pytest.mark.parametrize(
    ("command", "content"),
    [
        (["import", "users", "--from", "jsonl"], '{"login": "ann@example.com"}'),
        (["import", "realm", "--application-id", "10"], '{"realm": "studio", "roles": {"realm": [{"name": "guard"}]}}'),
    ],
    ids=["users", "realm"],
)
def test_import_into_a_missing_data_directory_is_refused(command: list[str], content: str, tmp_path: Path) -> None:
    file, missing = tmp_path / "file", tmp_path / "missing"
    file.write_text(content)
    result = run(*command, str(file), SSO_DATA_DIR=str(missing))
    assert (result.code, result.err.partition(":")[2].partition(":")[0]) == (
        1,
        f" there is no data directory at {missing}",
    )
    assert not missing.exists()


def test_data_directory_without_a_database_is_reported_and_stays_empty(tmp_path: Path) -> None:
    result = run("user", "list", SSO_DATA_DIR=str(tmp_path))
    assert result.code == 1
    assert result.err.startswith(f"sso: there is no database in the data directory {tmp_path}: set SSO_DATA_DIR")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", [("key", "list"), ("client", "add", "shop", "--profile", "oidc", "--host", "a.example.com")]
)
def test_master_key_is_not_created_in_a_missing_data_directory(
    command: tuple[str, ...], dsn: str, tmp_path: Path
) -> None:
    missing = tmp_path / "missing"
    result = run(*command, SSO_DATABASE_URL=dsn, SSO_DATA_DIR=str(missing))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"sso: there is no data directory at {missing}: ")
    assert run("user", "list", SSO_DATABASE_URL=dsn, SSO_DATA_DIR=str(missing)) == (0, "", "")
    assert not missing.exists()


def test_apply_says_that_it_creates_the_data_directory_for_the_master_key(dsn: str, tmp_path: Path) -> None:
    missing, document = tmp_path / "missing", tmp_path / "state.json"
    document.write_text('{"clients": [{"client_id": "shop", "client_secret": "a secret of the shop"}]}')
    settings = {"SSO_DATABASE_URL": dsn, "SSO_DATA_DIR": str(missing)}
    assert run("user", "add", "ann@example.com", **settings).err == ""  # has no secrets to encrypt
    assert not missing.exists()
    assert run("apply", str(document), **settings).err == f"creating a data directory at {missing}\n"
    assert run("apply", str(document), **settings).err == ""
    assert (missing / "secret.key").exists()


def test_migrate_creates_a_data_directory_that_doctor_names() -> None:
    with open_folder() as folder:

        def program(*arguments: str) -> CommandResult:
            done = run_sso(folder, *arguments, **QUICK, SSO_BIND="127.0.0.1:0")
            return CommandResult(done.returncode, done.stdout, done.stderr)

        data = folder.resolve() / "var"  # the default
        created = program("migrate")
        assert (created.code, created.err) == (0, f"creating a data directory at {data}\n")
        assert program("migrate").err == ""
        assert f"data directory: {data}\n" in program("doctor", "--verbose").out


def test_no_second_master_key_is_created_if_the_database_has_secrets(dsn: str, tmp_path: Path) -> None:
    settings = {"SSO_DATABASE_URL": dsn, "SSO_DATA_DIR": str(tmp_path)}
    key = {"SSO_SECRET_KEY": MasterKey.generate().text()}
    missing = (
        "sso: SSO_SECRET_KEY: the secrets in the database are encrypted with a master key, which is neither set nor in "
        f"{tmp_path / 'secret.key'}: use the settings of the service, or restore that file\n"
    )
    assert run("key", "list", **settings, **key).code == 0  # creates the signing keys, encrypted with this key
    assert run("client", "add", "shop", "--profile", "oidc", "--host", "shop.example.com", **settings) == (
        1,
        "",
        missing,
    )
    done = run_sso(tmp_path, "serve", **QUICK, **settings, SSO_BIND="127.0.0.1:0")
    assert (done.returncode, done.stderr.endswith(missing)) == (1, True)
    assert not (tmp_path / "secret.key").exists()
    assert run("user", "list", **settings) == (0, "", "")  # needs no master key
    assert run("user", "add", "ann@example.com", **settings, **key).code == 0
