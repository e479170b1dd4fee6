"""Commands import only what they need, because imports take most of their time."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.server import Server, clean_environment

SLOW = (
    "rich.console",
    "quart",
    "hypercorn",
    "jinja2",
    "sqlalchemy",
    "alembic",
    "pydantic",
    "argon2",
    "sso.services",
    "sso.app",
)
ONLY_WHILE_RUNNING = ("trio", "asyncio", "asyncpg", "structlog", "cryptography")
# The list of all commands needs none of these either: importing them takes as long as click itself.
NOT_FOR_THE_LIST = (
    "sso.config",
    "sso.settings",
    "sso.cli.context",
    "orjson",
    "json",
    "hashlib",
    "socket",
    "dataclasses",
    "msgspec",
)

# Runs commands one after the other, and writes the modules that are imported after each to a file. A command
# that ends with a question mark is completed.
PROGRAM = """
import os, sys
from sso.cli import main
path, *commands = sys.argv[1:]
with open(path, "w") as file:
    for command in commands:
        sys.argv[1:] = command.split()
        os.environ.pop("_SSO_COMPLETE", None)
        if command.endswith("?"):
            os.environ |= {"_SSO_COMPLETE": "bash_complete", "COMP_WORDS": f"sso {command[:-1]}"}
            os.environ["COMP_CWORD"] = str(len(sys.argv) - 1)
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, command
        print(*sys.modules, file=file)
"""
COMMANDS = (
    "client list",
    "user list",
    "key list",
    "project list",
    "role list",
    "group list",
    "app list",
    "audit",
)
GROUPS = ("user", "client", "key", "project", "role", "group", "perm", "why", "config")
LISTS = ("--help", "cl?", "?")
HELP = tuple(f"{name} {rest}" for rest in ("--help", "a?") for name in GROUPS)


def imported_modules(environment: dict[str, str], folder: Path, commands: Sequence[str]) -> dict[str, set[str]]:
    """Returns the modules that are imported after each of the commands."""
    file = folder / "modules"
    subprocess.run([sys.executable, "-c", PROGRAM, file, *commands], env=environment, capture_output=True, check=True)
    return dict(zip(commands, (set(line.split()) for line in file.read_text().splitlines()), strict=True))


@pytest.fixture(scope="module")
def imported(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The modules after each command, in the order of what they may import. The last ones use a running service."""
    environment = clean_environment(**server.settings)
    return imported_modules(environment, tmp_path_factory.mktemp("imports"), [*LISTS, *HELP, *COMMANDS])


def test_list_of_commands_and_its_completion_import_only_what_they_print(imported: dict[str, set[str]]) -> None:
    for command in LISTS:
        assert "sso.cli" in imported[command]
        assert imported[command].isdisjoint({*SLOW, *ONLY_WHILE_RUNNING, *NOT_FOR_THE_LIST}), command


def test_help_imports_nothing_that_only_a_running_command_needs(imported: dict[str, set[str]]) -> None:
    for command in HELP:
        modules = imported[command]
        assert f"sso.cli.{command.split()[0]}" in modules
        assert modules.isdisjoint({*SLOW, *ONLY_WHILE_RUNNING}), command
        assert not [module for module in modules if module.startswith("sso.perm.stores.")], command


def test_commands_of_a_running_service_import_nothing_of_it(imported: dict[str, set[str]]) -> None:
    for command in COMMANDS:
        assert imported[command].isdisjoint({*SLOW, "asyncpg", "cryptography"}), command


def test_commands_without_a_service_do_not_import_the_application(environment: dict[str, str], tmp_path: Path) -> None:
    for command, modules in imported_modules(environment, tmp_path, ("client list", "audit")).items():
        assert modules.isdisjoint({"rich.console", "sqlalchemy", "alembic", "sso.app"}), command


# What the service needs only if it is configured, or when it first uses it.
NOT_AT_THE_START = {"hypercorn", "h2", "httpx", "segno", "rich.console", "sqlalchemy", "alembic"}
SERVICE = """
import sys
from sso.core.omitted_modules import omit_modules, restore_hypercorn
omit_modules()
import sso.cli.serve, sso.worker
print(*sys.modules)
restore_hypercorn()
from sso.serve.hypercorn_server import serve_with_hypercorn
assert "h2" in sys.modules
"""


def test_service_starts_without_modules_that_it_may_never_use(environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", SERVICE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "quart" in modules
    assert modules.isdisjoint(NOT_AT_THE_START)
