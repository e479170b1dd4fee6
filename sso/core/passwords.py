"""Password hashing with argon2id in threads, at most one per CPU. Imported hashes of other forms are verified, too."""

import secrets
from base64 import b64encode
from collections.abc import Callable, Sequence

import argon2
from argon2.low_level import ARGON2_VERSION

from sso.core.fair_queue import FairQueue
from sso.core.password_hashes.reading import read_password_hash
from sso.core.thread_pool import ThreadPool, available_cpus

MAX_PASSWORD_LENGTH = 1024  # at a login; new passwords are shorter
SLOTS_PER_CPU = 4
MAX_WAITING = 200
MAX_WAIT_S = 5.0  # then a login is refused: its user would not wait for much longer


class Hasher:
    """Hashes and checks passwords. A caller first takes a slot of ``queue``, then counts its login attempt.

    So at most as many attempts as there are slots can run before their failures are counted, and the number of waiting
    callers is bounded. There are more slots than CPUs, because an attempt also reads and counts failures in its slot.
    A hash that is renewed after a login takes none: such hashes are at most as many as the checks.
    """

    def __init__(self, time_cost: int, memory_kib: int, max_waiting: int = MAX_WAITING) -> None:
        self._argon2 = argon2.PasswordHasher(time_cost=time_cost, memory_cost=memory_kib, parallelism=1)
        self._dummy_hash = _hash_of_no_password(self._argon2)
        self.queue = FairQueue(SLOTS_PER_CPU * available_cpus(), max_waiting, max_wait_s=MAX_WAIT_S)
        self._threads = ThreadPool(available_cpus())

    async def hash(self, password: str) -> str:
        return await self._threads.run(self._argon2.hash, password)

    async def check_new(self, rules: Callable[[str, Sequence[str]], None], password: str, words: Sequence[str]) -> None:
        """Calls the rules for new passwords in a thread, because they take long for some passwords."""
        await self._threads.run(rules, password, words)

    async def matches(self, hashed: str | None, password: str) -> bool:
        """Returns whether the password is right. Call it in a slot of the queue.

        ``hashed`` is None if the user does not exist or has no password. The call then takes as long and returns False.
        """
        if len(password) > MAX_PASSWORD_LENGTH:
            password = ""
        is_match = await self._threads.run(self._verify, hashed or self._dummy_hash, password)
        return is_match and hashed is not None

    def needs_rehash(self, hashed: str) -> bool:
        """Returns whether the hash has other parameters, or was imported and has another form."""
        try:
            return self._argon2.check_needs_rehash(hashed)
        except argon2.exceptions.InvalidHashError:
            return True

    def _verify(self, hashed: str, password: str) -> bool:
        try:
            if hashed.startswith("$argon2"):
                return self._argon2.verify(hashed, password)
            return read_password_hash(hashed).verify(password.encode())
        except (argon2.exceptions.VerificationError, ValueError):
            # ValueError: the hash, which another program has made, or the password cannot be read by the algorithm.
            return False


def _hash_of_no_password(hasher: argon2.PasswordHasher) -> str:
    """Returns a hash that matches no password. Unknown users are checked with it, and take as long as known ones.

    Its digest is random: hashing a random password would delay the start of each worker.
    """
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    salt, digest = _random_base64(hasher.salt_len), _random_base64(hasher.hash_len)
    return f"$argon2id$v={ARGON2_VERSION}${costs}${salt}${digest}"


def _random_base64(length: int) -> str:
    return b64encode(secrets.token_bytes(length)).decode().rstrip("=")
