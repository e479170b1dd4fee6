"""Credentials of a service client and of an administrator, for the Python client."""

from dataclasses import dataclass

import pytest

from sso.client import ServiceClient
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.server import Server

SECRET = "a secret of the program"


@dataclass(frozen=True)
class Administration:
    server: Server
    service: ServiceClient

    @property
    def url(self) -> str:
        return self.server.base_url


@pytest.fixture(scope="module")
def administration(server: Server) -> Administration:
    root = {"login": "client-root@example.com", "password": PASSWORD, "user_id": "770001"}
    with_app = {"login": "client-totp@example.com", "password": PASSWORD, "totp_secret": TOTP_SECRET}
    server.apply(
        {
            "users": [root, with_app],
            "clients": [
                {
                    "client_id": "program",
                    "client_secret": SECRET,
                    "profile": "oidc",
                    "grant_types": ["client_credentials"],
                    "application_id": 1,
                }
            ],
            "permissions": [{"user_id": "770001", "application_id": 1, "data": {"roles": ["root"]}}],
        }
    )
    return Administration(server, ServiceClient("program", SECRET))
