"""Runs commands in this process, with a separate database."""

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from sso.cli import main
from sso.core.encryption import MasterKey
from tests.kit.postgres import Postgres
from tests.kit.server import DEFAULT_SETTINGS, SINGLE_NODE
from tests.state.studio import studio


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        assert self.code == 0, self.err
        return self.out.splitlines()

    @property
    def failure(self) -> str:
        """The error line of a failed command."""
        assert (self.code, self.out) == (1, "")
        assert self.err.startswith("sso: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("sso: ").strip()


Sso = Callable[..., CommandResult]


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


@pytest.fixture
def sso(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Sso]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> CommandResult:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["sso", *arguments])
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
