"""The server that is changed in every way, with an administrator who has signed in in each of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.world import World
from tests.console.conftest import ConsoleBrowser
from tests.kit.builders import PASSWORD
from tests.kit.server import Server, run_sso
from tests.perm.endpoints.conftest import Studio, studio

__all__ = ["studio"]


@pytest.fixture(scope="module")
def world(server: Server, studio: Studio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("adapters")
    arguments = ("--server", server.base_url, "login", "--login", studio.root.login, "--password-stdin")
    login = run_sso(folder, *arguments, stdin=f"{PASSWORD}\n", XDG_CONFIG_HOME=str(folder))
    assert login.returncode == 0, login.stderr
    with ConsoleBrowser(server, studio.root) as browser:
        yield World(server, studio, browser, folder)
