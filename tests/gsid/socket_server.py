"""The server of the tests of WebSockets."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

HEARTBEAT_S = 1


@contextmanager
def socket_server(postgres_server: Postgres, folder: Path) -> Iterator[Server]:
    """Runs two workers with a short heartbeat interval. They hold a poll longer than a test takes."""
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_WORKERS": "2",
        "SSO_RATE_LOGIN": "0",
        "SSO_GSID_HOLD_S": "60",
        "SSO_GSID_HEARTBEAT_S": str(HEARTBEAT_S),
    }
    with running(folder, **settings) as server:
        yield server
