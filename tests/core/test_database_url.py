"""The hosts of a database URL are those that the driver reads."""

import inspect

import pytest
from asyncpg.connect_utils import _parse_connect_dsn_and_args

from sso.core.database_url import database_hosts

URLS = {
    "postgresql://u:p@h1/db": "h1",
    "postgresql://u:p@h1,h2:5433,h3/db": "h1 h2:5433 h3",
    "postgresql://h1:1,h2:2/db?sslmode=verify-full&sslrootcert=/ca.pem": "h1:1 h2:2",
    "postgresql://u:p@[::1]:5433/db": "[::1]:5433",
    "postgresql://u@/db?host=h1,h2": "h1 h2",
    "postgresql://u@/db?host=h1,h2&port=5433": "h1:5433 h2:5433",
    "postgresql://u@/db?host=h1,[::1]&port=5432,5434": "h1 [::1]:5434",
    "postgresql://u@/db?host=h1:7,h2:8": "h1:7 h2:8",
    "postgresql://u@/db?host=%2Ftmp%2Fa,127.0.0.1&port=5432,7": "/tmp/a 127.0.0.1:7",
    "postgresql://u@%2Ftmp%2Fa,h2/db": "/tmp/a h2",
    "postgresql://u@h1/db?host=h2&port=9": "h1",
    "postgresql://u@/db?host=h1&host=h2": "h2",
}


@pytest.mark.parametrize(("url", "expected"), URLS.items())
def test_hosts_are_those_of_the_driver(url: str, expected: str) -> None:
    hosts = database_hosts(url)
    assert " ".join(map(str, hosts)) == expected
    assert [_address(host.name, host.port) for host in hosts] == _of_driver(url)


def test_url_without_hosts_leaves_the_choice_to_the_driver() -> None:
    assert database_hosts("postgresql:///db") == ()
    assert database_hosts("postgresql://sso@/db?sslmode=disable") == ()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@h1:secret/db",
        "postgresql://u:p@h1,,h2/db",
        "postgresql://u:p@h1:0/db",
        "postgresql://u:p@h1:65536/db",
        "postgresql://u@/db?host=h1,h2&port=1,2,3",
        "postgresql://u@/db?host=::1",
        "postgresql://u@/db?secret",
    ],
)
def test_invalid_hosts_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"valid|fewer|invalid|bad query"):
        database_hosts(url)


def _address(name: str, port: int) -> str | tuple[str, int]:
    return f"{name}/.s.PGSQL.{port}" if name.startswith("/") else (name, port)


def _of_driver(url: str) -> list[str | tuple[str, int]]:
    nothing = dict.fromkeys(inspect.signature(_parse_connect_dsn_and_args).parameters)
    addresses: list[str | tuple[str, int]] = _parse_connect_dsn_and_args(**nothing | {"dsn": url, "ssl": False})[0]
    return addresses
