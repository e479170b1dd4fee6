"""Runs commands in process, at the socket of a running service and on a server, and compares their output."""

import asyncio
import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import pytest

from tests.cli.conftest import CommandResult, Sso, run_in_process
from tests.kit.builders import PASSWORD
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running
from tests.state.studio import studio

ROOT = "operator@example.com"
OPERATOR: dict[str, Any] = {
    "users": [{"login": ROOT, "password": PASSWORD, "user_id": "9001", "email_verified": True}],
    "permissions": [{"user_id": "9001", "application_id": 1, "data": {"roles": ["root"]}}],
}
# Values that differ between two installations.
_DIFFERENT = (
    (re.compile(r"\b[0-9a-f]{24}\b"), "GROUP"),
    (re.compile(r"\b(?!0123)[0-9a-f]{16}\b"), "WEBHOOK"),
    (re.compile(r"(?<![\w-])[\w-]{20,22}(?=\t| is |$|\")", re.MULTILINE), "KID"),
    (re.compile(r"(?<=secret )[\w-]{43}|(?<=: )[\w-]{43}\b"), "SECRET"),
    (re.compile(r"eyJ[\w.-]+"), "JWT"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|\+00:00)?"), "TIME"),
    (re.compile(r'"author": "\d*"'), '"author": "AUTHOR"'),
    (re.compile(r'("id": )"[\w-]{12,}"'), r'\1"ID"'),
    (re.compile(r"http://(127\.0\.0\.1|localhost):\d+"), "URL"),
    (re.compile(r"(?<=token=)[\w-]{20,}"), "TOKEN"),
    (re.compile(r"\b1[789]\d{8}\b"), "SECONDS"),
)


def comparable(result: CommandResult, *, ordered: bool) -> CommandResult:
    def masked(text: str) -> str:
        for pattern, name in _DIFFERENT:
            text = pattern.sub(name, text)
        return text

    lines = masked(result.out).splitlines()
    return CommandResult(result.code, "\n".join(lines if ordered else sorted(lines)), masked(result.err))


def document() -> dict[str, Any]:
    """The studio, and the operator of the server."""
    state = studio()
    state["users"] += OPERATOR["users"]
    state["permissions"] += OPERATOR["permissions"]
    return state


@contextmanager
def service(postgres_server: Postgres, folder: Path) -> Iterator[Server]:
    """A server with the document."""
    dsn = postgres_server.fresh()
    (folder / "state.json").write_bytes(orjson.dumps(document()))
    settings = QUICK | {
        "SSO_DATABASE_URL": dsn,
        "SSO_RATE_ADMIN": "1000000",
        "SSO_WORKERS": "1",
        "SSO_REGISTRATION": "invite",
    }
    with running(folder, **settings) as server:
        assert run_in_process("apply", str(folder / "state.json"), **server.settings).code == 0
        yield server
    postgres_server.drop(dsn)


@pytest.fixture(scope="module")
def beside(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose commands run on its machine."""
    with service(postgres_server, tmp_path_factory.mktemp("beside")) as server:
        yield server


@pytest.fixture(scope="module")
def signed_in(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server, and a configuration folder with a sign-in to it."""
    folder = tmp_path_factory.mktemp("service")
    with service(postgres_server, folder) as server:
        sign_in(server, folder)
        yield server, folder


def sign_in(server: Server, folder: Path) -> None:
    """Stores a sign-in of the operator in a configuration folder."""
    arguments = ("--server", server.base_url, "login", "--login", ROOT, "--password-stdin")
    login = run_in_process(*arguments, stdin=f"{PASSWORD}\n", XDG_CONFIG_HOME=str(folder))
    assert login.code == 0, login.err


Both = Callable[..., CommandResult]


# In a usual run, the other tests of commands have those that run in process, which take ten times as long.
FORMS = ("process", "socket", "server") if IS_LONG_RUN else ("socket", "server")


@pytest.fixture
def both(sso: Sso, signed_in: tuple[Server, Path], beside: Server, monkeypatch: pytest.MonkeyPatch) -> Both:
    """Runs a command in several forms. Returns the result of the first, after a comparison with the others."""
    server, folder = signed_in
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("SSO_REGISTRATION", "invite")
    if "process" in FORMS:
        assert sso("apply", str(folder / "state.json")).code == 0

    def run(line: str, *form: str) -> CommandResult:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        return sso(*form, *shlex.split(line))

    def run_on_server(line: str) -> CommandResult:
        return run(line, "--server", server.base_url)

    def run_beside(line: str) -> CommandResult:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in beside.settings.items():
                patch.setenv(name, value)
            return run(line)

    forms = {"process": run, "socket": run_beside, "server": run_on_server}

    def compare(line: str, *, ordered: bool = True) -> CommandResult:
        first, *others = (forms[form](line) for form in FORMS)
        for form, other in zip(FORMS[1:], others, strict=True):
            assert comparable(other, ordered=ordered) == comparable(first, ordered=ordered), (form, line)
        assert "Traceback" not in first.err
        return first

    return compare


Execute = Callable[..., None]


@pytest.fixture
def execute(environment: dict[str, str], signed_in: tuple[Server, Path], beside: Server) -> Execute:
    """Runs a statement in the databases of the installations that are compared."""
    installations = {"process": environment, "socket": beside.settings, "server": signed_in[0].settings}

    async def run(sql: str, values: tuple[Any, ...]) -> None:
        for settings in (installations[form] for form in FORMS):
            connection = await asyncpg.connect(settings["SSO_DATABASE_URL"])
            try:
                await connection.execute(sql, *values)
            finally:
                await connection.close()

    return lambda sql, *values: asyncio.run(run(sql, values))
