"""Password hashing with argon2id, in threads, at most one per CPU."""

import threading
import time

import argon2
import pytest
import trio

from sso.core.passwords import MAX_PASSWORD_LENGTH, SLOTS_PER_CPU, Hasher
from sso.core.thread_pool import available_cpus

TIMEOUT_S = 60  # generous, for slow machines


@pytest.fixture
def hasher() -> Hasher:
    return Hasher(1, 8)


@pytest.mark.parametrize("password", ["correct horse", "ünïcode 🎮", " spaces ", "x" * MAX_PASSWORD_LENGTH, "a\0b"])
async def test_only_the_correct_password_matches(hasher: Hasher, password: str) -> None:
    hashed = await hasher.hash(password)
    assert await hasher.matches(hashed, password)
    assert not await hasher.matches(hashed, password + "x")
    assert not await hasher.matches(hashed, password.upper() + "Y")
    assert not await hasher.matches(hashed, "")


async def test_hash_is_argon2id_with_the_configured_cost_and_a_salt() -> None:
    hashed = await Hasher(3, 64).hash("password")
    assert hashed.startswith("$argon2id$v=19$m=64,t=3,p=1$")
    assert "password" not in hashed
    assert hashed != await Hasher(3, 64).hash("password")


async def test_hash_with_another_cost_needs_rehash(hasher: Hasher) -> None:
    assert not hasher.needs_rehash(await hasher.hash("password"))
    assert hasher.needs_rehash(await Hasher(2, 8).hash("password"))
    assert hasher.needs_rehash(await Hasher(1, 16).hash("password"))


async def test_hash_with_another_cost_still_matches(hasher: Hasher) -> None:
    assert await hasher.matches(await Hasher(2, 16).hash("password"), "password")


async def test_unknown_user_is_checked_with_a_hash_of_the_configured_cost() -> None:
    """A hash that argon2 cannot read would be refused at once."""
    hasher = Hasher(3, 64)
    assert not hasher.needs_rehash(hasher._dummy_hash)
    assert hasher._dummy_hash != Hasher(3, 64)._dummy_hash
    with pytest.raises(argon2.exceptions.VerifyMismatchError):
        argon2.PasswordHasher().verify(hasher._dummy_hash, "password")


async def test_no_password_matches_without_a_hash(hasher: Hasher) -> None:
    for password in ("", "password", hasher._dummy_hash, "\ud800"):
        assert not await hasher.matches(None, password)


async def test_check_of_an_unknown_user_takes_as_long_as_of_a_known_one() -> None:
    hasher = Hasher(3, 8192)
    known = await hasher.hash("password")

    async def fastest(hashed: str | None, password: str) -> float:
        durations = []
        for _ in range(7):
            started = time.process_time()  # CPU time of this process: other programs do not count
            await hasher.matches(hashed, password)
            durations.append(time.process_time() - started)
        return min(durations)

    wrong, unknown = await fastest(known, "wrong"), await fastest(None, "wrong")
    assert wrong / 2 < unknown < wrong * 2
    assert wrong / 2 < await fastest(known, "x" * 100_000) < wrong * 2


@pytest.mark.parametrize("password", ["x" * (MAX_PASSWORD_LENGTH + 1), "x" * 10_000_000, "\ud800", "\udfff" * 1025])
async def test_invalid_password_does_not_match(hasher: Hasher, password: str) -> None:
    assert not await hasher.matches(await hasher.hash("x"), password)


@pytest.mark.parametrize("hashed", ["x", "$2b$12$abcdefghijklmnopqrstuv"])
async def test_hash_of_another_algorithm_matches_nothing(hasher: Hasher, hashed: str) -> None:
    assert not await hasher.matches(hashed, "password")


async def test_hashes_are_computed_in_as_many_threads_as_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hashes wait for each other, so the test needs all threads, and the event loop opens the barrier."""
    cpus = available_cpus()
    hasher = Hasher(1, 8)
    assert hasher.queue.slots == SLOTS_PER_CPU * cpus
    loop_thread = threading.get_ident()
    running, peak, lock = 0, 0, threading.Lock()
    barrier = threading.Barrier(cpus + 1)

    def slow_hash(_: object, _password: str) -> str:
        nonlocal running, peak
        assert threading.get_ident() != loop_thread
        with lock:
            running += 1
            peak = max(peak, running)
        barrier.wait(TIMEOUT_S)
        with lock:
            running -= 1
        return "hash"

    monkeypatch.setattr(argon2.PasswordHasher, "hash", slow_hash)
    async with trio.open_nursery() as nursery:
        for _ in range(4 * cpus):
            nursery.start_soon(hasher.hash, "password")
        for _ in range(4):
            with trio.fail_after(TIMEOUT_S):
                while barrier.n_waiting < cpus:  # noqa: ASYNC110 - threads set no event
                    await trio.sleep(0.001)
            barrier.wait(TIMEOUT_S)
    assert peak == cpus
