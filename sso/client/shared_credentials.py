"""Credentials that tasks or threads share, so that one of them signs in for all."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sso.client.credentials import Credentials, SignIn
from sso.client.errors import ClientError

Lock = TypeVar("Lock")


class TaskLock(Protocol):
    async def acquire(self) -> None: ...

    def release(self) -> None: ...


@dataclass
class SharedSignIn(Generic[Lock]):
    lock: Lock
    failures: int = 0
    error: ClientError | None = None  # of the last sign-in, if it has failed


@dataclass
class SharedCredentials(Generic[Lock]):
    """One holds the lock while it gets the headers, and signs in if it must; the others wait for it.

    If it fails, those who have waited fail as well, instead of trying one after the other.
    """

    credentials: Credentials
    shared: SharedSignIn[Lock]

    def headers(self) -> SignIn:
        return self.credentials.headers()

    def forget(self, refused: Mapping[str, str]) -> bool:
        return self.credentials.forget(refused)


class TaskCredentials(SharedCredentials[TaskLock]):
    """For tasks, whose lock is waited for by the client."""


class ThreadCredentials(SharedCredentials[AbstractContextManager[object]]):
    """For threads. The lock is reentrant: ``otp`` and ``on_renewal`` may send requests."""

    def forget(self, refused: Mapping[str, str]) -> bool:
        with self.shared.lock:
            return super().forget(refused)
