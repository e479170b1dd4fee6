"""Password hashes: argon2id, off the event loop, never more at once than there are cores."""

import os
import threading
import time

import argon2
import pytest
import trio

from sso.core.passwords import MAX_PASSWORD_LENGTH, SLOTS_PER_CPU, Hasher


@pytest.fixture
def hasher() -> Hasher:
    return Hasher(1, 8)


@pytest.mark.parametrize("password", ["correct horse", "ünïcode 🎮", " spaces ", "x" * MAX_PASSWORD_LENGTH, "a\0b"])
async def test_the_right_password_matches_and_no_other(hasher: Hasher, password: str) -> None:
    hashed = await hasher.hash(password)
    assert await hasher.matches(hashed, password)
    assert not await hasher.matches(hashed, password + "x")
    assert not await hasher.matches(hashed, password.upper() + "Y")
    assert not await hasher.matches(hashed, "")


async def test_the_hash_is_argon2id_with_the_cost_of_the_settings_and_a_salt() -> None:
    hashed = await Hasher(3, 64).hash("password")
    assert hashed.startswith("$argon2id$v=19$m=64,t=3,p=1$")
    assert "password" not in hashed
    assert hashed != await Hasher(3, 64).hash("password")


async def test_a_hash_of_another_cost_needs_to_be_made_anew(hasher: Hasher) -> None:
    assert not hasher.needs_rehash(await hasher.hash("password"))
    assert hasher.needs_rehash(await Hasher(2, 8).hash("password"))
    assert hasher.needs_rehash(await Hasher(1, 16).hash("password"))


async def test_a_hash_of_another_cost_still_matches(hasher: Hasher) -> None:
    assert await hasher.matches(await Hasher(2, 16).hash("password"), "password")


async def test_nobody_has_a_password(hasher: Hasher) -> None:
    for password in ("", "password", hasher._dummy_hash, "\ud800"):
        assert not await hasher.matches(None, password)


async def test_an_unknown_user_takes_as_long_as_a_known_one() -> None:
    hasher = Hasher(3, 8192)
    hasher.prepare()
    known = await hasher.hash("password")

    async def best(hashed: str | None, password: str) -> float:
        took = []
        for _ in range(7):
            started = time.perf_counter()
            await hasher.matches(hashed, password)
            took.append(time.perf_counter() - started)
        return min(took)

    wrong, unknown = await best(known, "wrong"), await best(None, "wrong")
    assert wrong / 2 < unknown < wrong * 2
    assert wrong / 2 < await best(known, "x" * 100_000) < wrong * 2


@pytest.mark.parametrize("password", ["x" * (MAX_PASSWORD_LENGTH + 1), "x" * 10_000_000, "\ud800", "\udfff" * 1025])
async def test_what_can_be_no_password_is_refused_like_a_wrong_one(hasher: Hasher, password: str) -> None:
    assert not await hasher.matches(await hasher.hash("x"), password)


@pytest.mark.parametrize("hashed", ["x", "$2b$12$abcdefghijklmnopqrstuv"])
async def test_a_hash_of_another_kind_matches_nothing(hasher: Hasher, hashed: str) -> None:
    assert not await hasher.matches(hashed, "password")


async def test_hashing_leaves_the_event_loop_free_and_takes_a_core_each(monkeypatch: pytest.MonkeyPatch) -> None:
    hasher = Hasher(1, 8)
    cores = os.cpu_count() or 1
    assert hasher.queue.slots == SLOTS_PER_CPU * cores
    loop_thread = threading.get_ident()
    now, most, lock = 0, 0, threading.Lock()

    def slow(_: str) -> str:
        nonlocal now, most
        assert threading.get_ident() != loop_thread
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return "hash"

    monkeypatch.setattr(argon2.PasswordHasher, "hash", lambda _, password: slow(password))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await trio.sleep(0.001)
            ticks += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        async with trio.open_nursery() as work:
            for _ in range(4 * cores):
                work.start_soon(hasher.hash, "password")
        nursery.cancel_scope.cancel()
    assert most <= cores
    assert ticks > 20
