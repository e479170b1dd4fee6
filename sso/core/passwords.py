"""Password hashing: argon2id, off the event loop, never more at once than there are cores."""

import secrets
from functools import cached_property

import argon2

from sso.core.cores import cores
from sso.core.fair_queue import FairQueue
from sso.core.threads import Threads

LONGEST = 1024
ATTEMPTS_PER_CORE = 4
MAX_WAITING = 200


class Hasher:
    """Whoever checks a password takes a slot of the queue first, before the attempt is counted: no burst can run ahead
    of the count of failures, and what waits is bounded and takes turns.

    There are more slots than cores, since an attempt also waits for the database: cores are for the hash alone.
    """

    def __init__(self, time_cost: int, memory_kib: int, max_waiting: int = MAX_WAITING) -> None:
        self._argon2 = argon2.PasswordHasher(time_cost=time_cost, memory_cost=memory_kib, parallelism=1)
        self.queue = FairQueue(ATTEMPTS_PER_CORE * cores(), max_waiting)
        self._threads = Threads(cores())

    @cached_property
    def _nobody(self) -> str:
        """A hash that no password has, so that an unknown user costs what a known one does."""
        return self._argon2.hash(secrets.token_urlsafe(32))

    def prepare(self) -> None:
        """Make the hash of nobody now, so that the first unknown user does not take twice as long."""
        _ = self._nobody

    async def hash(self, password: str) -> str:
        return await self._threads.run(self._argon2.hash, password)

    async def matches(self, hashed: str | None, password: str) -> bool:
        """To be called in a slot of the queue. ``None`` (no such user, no password) takes as long and says no."""
        if len(password) > LONGEST:
            password = ""
        good = await self._threads.run(self._verify, hashed or self._nobody, password)
        return good and hashed is not None

    def needs_rehash(self, hashed: str) -> bool:
        return self._argon2.check_needs_rehash(hashed)

    def _verify(self, hashed: str, password: str) -> bool:
        try:
            return self._argon2.verify(hashed, password)
        except (argon2.exceptions.VerifyMismatchError, argon2.exceptions.InvalidHashError):
            return False
        except UnicodeEncodeError:
            return False
