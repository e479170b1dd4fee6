"""Commands import only what they need, because imports take most of their time."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

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

# Runs commands one after the other, and writes the modules that are imported after each to a file.
PROGRAM = """
import json, sys
from sso.cli import main
with open(sys.argv[1], "w") as file:
    for arguments in json.loads(sys.argv[2]):
        sys.argv[1:] = arguments
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, arguments
        print(*sys.modules, file=file)
"""
COMMANDS = (
    "--help",
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


def imported_modules(environment: dict[str, str], folder: Path, commands: Iterable[str]) -> dict[str, set[str]]:
    """Returns the modules that are imported after each of the commands."""
    commands, file = list(commands), folder / "modules"
    arguments = json.dumps([command.split() for command in commands])
    subprocess.run([sys.executable, "-c", PROGRAM, file, arguments], env=environment, capture_output=True, check=True)
    return dict(zip(commands, (set(line.split()) for line in file.read_text().splitlines()), strict=True))


def test_commands_of_a_running_service_import_nothing_of_it(server: Server, tmp_path: Path) -> None:
    environment = clean_environment(**server.settings)
    for command, modules in imported_modules(environment, tmp_path, COMMANDS).items():
        assert "sso.cli" in modules
        assert modules.isdisjoint({*SLOW, "asyncpg", "cryptography"}), command


def test_commands_without_a_service_do_not_import_the_application(environment: dict[str, str], tmp_path: Path) -> None:
    for command, modules in imported_modules(environment, tmp_path, COMMANDS).items():
        assert modules.isdisjoint({"rich.console", "sqlalchemy", "alembic", "sso.app"}), command


def test_help_imports_nothing_that_only_a_running_command_needs(environment: dict[str, str], tmp_path: Path) -> None:
    for command, modules in imported_modules(environment, tmp_path, [f"{name} --help" for name in GROUPS]).items():
        assert f"sso.cli.{command.split()[0]}" in modules
        assert modules.isdisjoint({*SLOW, *ONLY_WHILE_RUNNING}), command
        assert not [module for module in modules if module.startswith("sso.perm.stores.")], command
