"""Credentials that tasks share, so that one of them signs in for all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sso.client.credentials import Credentials, SignIn
from sso.client.errors import ClientError


class TaskLock(Protocol):
    async def acquire(self) -> None: ...

    def release(self) -> None: ...


@dataclass
class SharedSignIn:
    lock: TaskLock
    failures: int = 0
    error: ClientError | None = None  # of the last failure


@dataclass
class TaskCredentials:
    """For tasks: one holds the lock while it gets the headers, and signs in if it must; the others wait for it.

    If it fails, those who have waited fail as well, instead of trying one after the other.
    """

    credentials: Credentials
    shared: SharedSignIn

    def headers(self) -> SignIn:
        return self.credentials.headers()

    def forget(self, refused: Mapping[str, str]) -> bool:
        return self.credentials.forget(refused)
