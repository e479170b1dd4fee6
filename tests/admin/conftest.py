"""Requests to the management API by users with certain rights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.kit.api_document import checked
from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio, studio

__all__ = ["studio"]


@dataclass(frozen=True)
class Administrator:
    """A user, or with a token a service client, who calls the management API."""

    client: httpx.Client
    headers: dict[str, str]
    user_id: str = ""

    @classmethod
    def of(cls, user: ApiUser) -> "Administrator":
        return cls(user.client, {"Authorization": f"Bearer {user.jwt}", "Factor": FACTOR}, user.user_id)

    def request(self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any) -> httpx.Response:
        headers = {**self.headers, **(headers or {})}
        return checked(self.client.request(method, f"/api/admin{path}", headers=headers, **options))

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.request("GET", path, params=query)

    def data(self, path: str, **query: Any) -> Any:
        response = self.get(path, **query)
        assert response.status_code == 200, response.text
        return response.json()["data"]


@pytest.fixture(scope="module")
def root(studio: Studio) -> Administrator:
    return Administrator.of(studio.root)


def administrator(studio: Studio, *rules: str) -> Administrator:
    """A new user with these root rules."""
    user = studio.user()
    if rules:
        studio.give_rules(user, *rules)
    return Administrator.of(user)


@pytest.fixture(scope="module")
def manager(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_users")


def service_token(server: Server, client_id: str, application_id: int) -> dict[str, str]:
    """The headers of a new service client of an application."""
    secret = f"a secret of the client {client_id}"
    fields = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": application_id}
    server.save_accounts(clients=[{"client_id": client_id, "client_secret": secret, **fields}])
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    with server.client() as client:
        answer = client.post("/proxy/oauth/token", data=form)
    assert answer.status_code == 200, answer.text
    return {"Authorization": f"Bearer {answer.json()['access_token']}"}


@pytest.fixture(scope="module")
def service_client(server: Server) -> Iterator[Administrator]:
    """A service client of the central application."""
    with server.client() as client:
        yield Administrator(client, service_token(server, "management", 1))
