"""TLS parameters of a URL with several hosts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.to_thread import run_sync as in_thread

from sso.core.database_url import database_hosts
from sso.db.errors import Unavailable, Unreachable
from sso.db.standalone import fetch_value
from tests.kit.open_database import open_database
from tests.kit.ports import free_port
from tests.kit.tls_proxy import make_certificate, serve_tls

NOT_TRUSTED = r"refuses connections; .*: has a certificate that is not trusted$"


@asynccontextmanager
async def encrypted(dsn: str, certificate: Path) -> AsyncIterator[str]:
    """Yields a URL of two hosts, without TLS parameters: one refuses connections, the other speaks TLS."""
    [host] = database_hosts(dsn)
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve_tls, certificate, f"{host.name}/.s.PGSQL.{host.port}")
        name = dsn.partition("?")[0].rpartition("/")[2]
        yield f"postgresql://sso@127.0.0.1:{free_port()},127.0.0.1:{port}/{name}"
        nursery.cancel_scope.cancel()


async def test_connections_verify_the_certificate(dsn: str, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "server.pem")
    async with encrypted(dsn, certificate) as url:
        url += f"?sslmode=verify-full&sslrootcert={certificate}"
        async with open_database(url, 2) as database:
            await database.open_connections()
        assert await in_thread(fetch_value, url, "SELECT 7") == 7


async def test_certificates_that_are_not_trusted_are_refused(dsn: str, tmp_path: Path) -> None:
    other = make_certificate(tmp_path / "other.pem")
    async with encrypted(dsn, make_certificate(tmp_path / "server.pem")) as url:
        url += f"?sslmode=verify-full&sslrootcert={other}"
        async with open_database(url, 2) as database:
            with pytest.raises(Unreachable, match=NOT_TRUSTED):
                await database.ping()
        with pytest.raises(Unreachable, match=NOT_TRUSTED):
            await in_thread(fetch_value, url, "SELECT 7")


async def test_name_in_the_certificate_must_be_that_of_the_host(dsn: str, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "server.pem")
    async with encrypted(dsn, certificate) as url:
        url = url.replace("127.0.0.1", "localhost") + f"?sslrootcert={certificate}&sslmode="
        with pytest.raises(Unreachable, match=r"has a certificate that is not trusted$"):
            await in_thread(fetch_value, f"{url}verify-full", "SELECT 7")
        assert await in_thread(fetch_value, f"{url}verify-ca", "SELECT 7") == 7


@pytest.mark.parametrize("hosts", ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2"])
def test_missing_file_of_the_ca_is_reported(hosts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # the driver also looks there
    with pytest.raises(Unavailable, match=r"its sslmode needs sslrootcert$"):
        fetch_value(f"postgresql://sso@{hosts}/sso?sslmode=verify-full", "SELECT 7")
