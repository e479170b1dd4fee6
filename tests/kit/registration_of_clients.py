"""A service at which clients may register themselves, and the administrator who approves them."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from sso.core.path_ids import path_id
from tests.admin.conftest import service_token
from tests.kit.postgres import Postgres
from tests.kit.server import NO_LIMITS, QUICK, TWO_WORKERS, Server, running

REGISTER = "/proxy/oauth/register"
_numbers = itertools.count(1)


@dataclass
class RegistrationService:
    server: Server
    http: httpx.Client
    root: dict[str, str] = field(default_factory=dict)  # the headers of an administrator

    def register(self, token: str = "", **metadata: Any) -> httpx.Response:
        body = {"redirect_uris": ["https://tool.example.net/cb"], "token_endpoint_auth_method": "none", **metadata}
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.http.post(REGISTER, json=body, headers=headers)

    def registered(self, token: str = "", **metadata: Any) -> dict[str, Any]:
        answer = self.register(token, **metadata)
        assert answer.status_code == 201, answer.text
        client: dict[str, Any] = answer.json()
        return client

    def manage(self, method: str, client: dict[str, Any], token: str | None = None, **options: Any) -> httpx.Response:
        token = client["registration_access_token"] if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.http.request(method, f"{REGISTER}/{client['client_id']}", headers=headers, **options)

    def admin(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.http.request(method, f"/api/admin{path}", headers=self.root, **options)

    def client(self, client_id: str) -> dict[str, Any]:
        data: dict[str, Any] = self.admin("GET", f"/clients/{path_id(client_id)}").json()["data"]
        return data

    def change(self, client_id: str, **fields: Any) -> httpx.Response:
        return self.admin("PATCH", f"/clients/{path_id(client_id)}", json=fields)

    def waiting(self) -> list[dict[str, Any]]:
        """The clients that wait for an approval."""
        answer = self.admin("GET", "/clients", params={"approved": "0", "limit": "1000"})
        data: list[dict[str, Any]] = answer.json()["data"]
        return data

    def approve(self, client_id: str) -> None:
        answer = self.change(client_id, approved=True)
        assert answer.status_code == 200, answer.text

    def initial_token(self, uses: int = 1, days: int = 1) -> str:
        answer = self.admin("POST", "/registration-tokens", json={"uses": uses, "days": days})
        assert answer.status_code == 201, answer.text
        token: str = answer.json()["data"]["token"]
        return token


@contextmanager
def registration_service(postgres: Postgres, folder: Path, **settings: str) -> Iterator[RegistrationService]:
    dsn = postgres.fresh()
    own = TWO_WORKERS | {"SSO_DATABASE_URL": dsn, "SSO_DATABASE_POOL": "5"}
    own |= {"SSO_CLIENT_REGISTRATION": "approved"} | settings
    with running(folder, **QUICK | NO_LIMITS | own) as server, server.client() as http:
        root = service_token(server, f"root{next(_numbers)}", 1)
        yield RegistrationService(server, http, root)
    postgres.drop(dsn)
