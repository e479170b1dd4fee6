"""The sign-ins of this user to servers, in a file that nobody else can read: ``~/.config/sso/logins.json``."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from sso.cli.context import CommandFailure
from sso.client import BrowserLogin, ServiceToken, SessionToken
from sso.client.credentials import Credentials

LAST = "last"  # in place of a URL


class Logins:
    """Each server has ``kind`` (user, browser or client) and the tokens. Times are Unix seconds of this machine."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(click.get_app_dir("sso"))
        self.file = self._folder / "logins.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one command at a time renews a token: a refresh token that is used twice is revoked."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._folder / "logins.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def url(self, server: str) -> str:
        """Returns the URL of a server, which may be ``last``."""
        if server != LAST:
            return server.rstrip("/")
        last = self._read().get("last")
        if not last:
            raise CommandFailure("there is no last login: expected --server URL")
        return str(last)

    def add(self, url: str, login: dict[str, Any]) -> None:
        stored = self._read()
        self._write({"servers": {**stored.get("servers", {}), url: login}, "last": url})

    def remove(self, url: str) -> dict[str, Any] | None:
        """Returns the removed sign-in, or None if there is none."""
        stored = self._read()
        login: dict[str, Any] | None = stored.get("servers", {}).pop(url, None)
        if stored.get("last") == url:
            stored["last"] = None
        self._write(stored)
        return login

    def get(self, url: str) -> dict[str, Any] | None:
        login: dict[str, Any] | None = self._read().get("servers", {}).get(url)
        return login

    def find(self, url: str) -> dict[str, Any]:
        login = self.get(url)
        if login is None:
            raise CommandFailure(f"you are not signed in to {url}: run `sso --server {url} login`")
        return login

    def update(self, url: str, **changes: Any) -> None:
        stored = self._read()
        if url in stored.get("servers", {}):
            stored["servers"][url] |= changes
            self._write(stored)

    def _read(self) -> dict[str, Any]:
        try:
            stored = json.loads(self.file.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise CommandFailure(f"cannot read {self.file}: {error}") from None
        return stored if isinstance(stored, dict) else {}

    def _write(self, stored: dict[str, Any]) -> None:
        """Replaces the file. The new one is readable by this user only, from its first byte."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        with suppress(FileNotFoundError):
            new.unlink()
        descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(stored, file)
        new.replace(self.file)


def session_login(credentials: SessionToken, login: str) -> dict[str, Any]:
    return {
        "kind": "user",
        "login": login,
        "token": credentials.token,
        "factor": credentials.factor,
        **_jwt(credentials),
    }


def browser_login(credentials: BrowserLogin) -> dict[str, Any]:
    return {
        "kind": "browser",
        "client_id": credentials.client_id,
        "refresh_token": credentials.refresh_token,
        "idempotency_key": credentials.idempotency_key,
        "factor": credentials.factor,
        **_jwt(credentials),
    }


def client_login(client_id: str, access_token: str, seconds: int) -> dict[str, Any]:
    return {"kind": "client", "client_id": client_id, "access_token": access_token, "ends": int(time.time()) + seconds}


def renewal_of(credentials: Credentials) -> dict[str, Any]:
    """Returns what has to be stored after tokens were renewed."""
    match credentials:
        case SessionToken():
            return {"token": credentials.token, **_jwt(credentials)}
        case BrowserLogin():
            key = credentials.idempotency_key
            return {"refresh_token": credentials.refresh_token, "idempotency_key": key, **_jwt(credentials)}
    return {}


def token_of(credentials: SessionToken | BrowserLogin) -> str:
    """Returns the token that is replaced by each renewal."""
    return credentials.token if isinstance(credentials, SessionToken) else credentials.refresh_token


def credentials_of(url: str, login: dict[str, Any]) -> Credentials:
    if login["kind"] == "client":
        if login["ends"] <= time.time():
            raise CommandFailure(f"the sign-in has expired: run `sso --server {url} login --client-id …` again")
        return ServiceToken(login["access_token"])
    credentials: SessionToken | BrowserLogin
    if login["kind"] == "browser":
        credentials = BrowserLogin(login["client_id"], login["refresh_token"], login["factor"])
        credentials.idempotency_key = login.get("idempotency_key", credentials.idempotency_key)
    else:
        credentials = SessionToken(login["token"], login["factor"])
    credentials.jwt.keep(login["jwt"], login["jwt_ends"] - time.time())
    return credentials


def _jwt(credentials: SessionToken | BrowserLogin) -> dict[str, Any]:
    return {"jwt": credentials.jwt.value, "jwt_ends": int(time.time() + credentials.jwt.seconds_left)}
