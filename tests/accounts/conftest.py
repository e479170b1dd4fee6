"""Servers that require a second factor."""

from collections.abc import Iterator

import pytest

from tests.kit.server import Server
from tests.kit.shared_server import SharedServers

SETTINGS = {"SSO_RATE_LOGIN": "0", "SSO_REGISTRATION": "open", "SSO_REGISTRATION_CHALLENGE": "off"}


@pytest.fixture(scope="module")
def strict(shared_servers: SharedServers) -> Iterator[Server]:
    """Administrators must have a second factor."""
    with shared_servers.use(**SETTINGS, SSO_REQUIRE_2FA="admins") as server:
        yield server


@pytest.fixture(scope="module")
def strictest(shared_servers: SharedServers) -> Iterator[Server]:
    """Everybody must have a second factor, and everybody can register."""
    with shared_servers.use(**SETTINGS, SSO_REQUIRE_2FA="all") as server:
        yield server
