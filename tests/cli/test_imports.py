"""Commands import only what they need, because imports take most of their time."""

import subprocess
import sys

import pytest

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

PROGRAM = """
import atexit, sys
atexit.register(lambda: print("\\nimported", *sys.modules))
from sso.cli import main
main()
"""


def imported_modules(environment: dict[str, str], *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("\nimported ")[2].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("client", "list"),
        ("user", "list"),
        ("key", "list"),
        ("project", "list"),
        ("role", "list"),
        ("group", "list"),
        ("app", "list"),
        ("audit",),
    ],
)
def test_command_does_not_import_the_web_framework(environment: dict[str, str], arguments: tuple[str, ...]) -> None:
    modules = imported_modules(environment, *arguments)
    assert "sso.cli" in modules
    assert modules.isdisjoint(SLOW)


@pytest.mark.parametrize("name", ["user", "client", "key", "project", "role", "group", "perm", "why", "config"])
def test_help_imports_nothing_that_only_a_running_command_needs(environment: dict[str, str], name: str) -> None:
    modules = imported_modules(environment, name, "--help")
    assert f"sso.cli.{name}" in modules
    assert modules.isdisjoint({*SLOW, *ONLY_WHILE_RUNNING})
    assert not [module for module in modules if module.startswith("sso.perm.stores.")]
