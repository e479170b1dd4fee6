from collections.abc import Iterator

import pytest

from tests.kit import oauth, postgres
from tests.kit.server import QUICK, Server, running
from tests.upstream import stand_ins
from tests.upstream.stand_ins import CodeProvider, SteamStandIn


@pytest.fixture(scope="module")
def server(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2", "SSO_RATE_LOGIN": "0"}
    settings |= {"SSO_RATE_UPSTREAM": "0", "SSO_REGISTRATION": "open", "SSO_REGISTRATION_CHALLENGE": "off"}
    with running(tmp_path_factory.mktemp("upstream"), **settings) as server:
        yield server
        oauth.close_all()


@pytest.fixture
def provider() -> Iterator[CodeProvider]:
    provider = CodeProvider()
    with stand_ins.running(provider):
        yield provider


@pytest.fixture
def steam() -> Iterator[SteamStandIn]:
    steam = SteamStandIn()
    with stand_ins.running(steam):
        yield steam
