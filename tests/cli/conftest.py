"""Runs commands in this process, with a separate database or with the settings of a running service."""

import gc
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from structlog.testing import capture_logs

from sso.cli import main
from sso.core.encryption import MasterKey
from tests.kit.postgres import Postgres
from tests.kit.restored_logging import restored_logging
from tests.kit.server import DEFAULT_SETTINGS, SINGLE_NODE, Server
from tests.kit.shared_server import SharedServers
from tests.state.studio import studio


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def output(self) -> str:
        """What a successful command printed."""
        assert self.code == 0, self.err
        return self.out

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()

    @property
    def failure(self) -> str:
        """The error line of a failed command."""
        assert (self.code, self.out) == (1, "")
        assert self.err.startswith("sso: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("sso: ").strip()

    def failed_with(self, *words: str) -> bool:
        """Whether the command printed one line with these words to standard error and exited with code 1."""
        return bool(self.failure) and all(word in self.err for word in words)


def run_in_process(*arguments: str, stdin: str | bytes = "", **settings: str) -> CommandResult:
    """Runs a command with these settings alone."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, restored_logging(), capture_logs():  # the program shows errors only
        for name in [name for name in os.environ if name.startswith("SSO_")]:
            patch.delenv(name)
        for name, value in settings.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["sso", *arguments])
        patch.setattr(sys, "stdin", _standard_input(stdin))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            gc.enable()
    return CommandResult(int(ended.value.code or 0), *(file.detach().getvalue().decode() for file in (out, err)))


def _standard_input(content: str | bytes) -> io.TextIOWrapper:
    file = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    file.name = "<stdin>"
    return io.TextIOWrapper(file, "utf-8")


Sso = Callable[..., CommandResult]
State = Callable[[], object]


@pytest.fixture(scope="module")
def environment(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("cli")
    dsn = postgres_server.fresh()
    yield {
        "SSO_DATABASE_URL": dsn,
        **SINGLE_NODE,
        **DEFAULT_SETTINGS,
        "SSO_DATA_DIR": str(folder),
        "SSO_SECRET_KEY": MasterKey.generate().text(),
        "SSO_ARGON2_TIME": "1",
        "SSO_ARGON2_KIB": "8",
    }
    postgres_server.drop(dsn)


@pytest.fixture(scope="module")
def studio_service(shared_servers: SharedServers) -> Iterator[Server]:
    """A running service with the studio document.

    A file whose ``environment`` has its settings runs commands at its socket, which takes a tenth of the time of
    commands that build the services themselves.
    """
    with shared_servers.use(studio(), SSO_WORKERS="1") as server:
        yield server


@pytest.fixture
def sso(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Sso]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, stdin: str | None = None) -> CommandResult:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["sso", *arguments])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", _standard_input(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
        output = capsys.readouterr()
        return CommandResult(int(ended.value.code or 0), output.out, output.err)

    yield run
    gc.enable()


@pytest.fixture
def applied(sso: Sso, tmp_path: Path) -> Sso:
    """The command runner, with the studio document applied."""
    file = tmp_path / "studio.json"
    file.write_bytes(orjson.dumps(studio()))
    sso("apply", str(file)).lines  # noqa: B018 - it must succeed
    return sso


@pytest.fixture
def state(sso: Sso) -> State:
    """Everything that a failed command must leave as it is. The audit trail comes first: an export is audited."""

    def read() -> tuple[list[str], str]:
        entries = sso("audit", "--json", "--limit", "200").lines
        return [entry for entry in entries if '"state.export"' not in entry], sso("export").out

    return read
