"""Signatures that are made in a thread."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from sso.core.jwt import JWT, Signer
from sso.core.keys import GENERATE
from sso.keys.signing_pool import INLINE_SIGNATURES, SigningPool, signing_threads

MANY = 3 * INLINE_SIGNATURES


class RecordingSigner(Signer, frozen=True):
    """Records the thread in which it signs."""

    def sign(self, claims: Mapping[str, Any], header_type: str = JWT) -> str:
        threads.append(threading.current_thread())
        if "bad" in claims:
            raise KeyError("bad")
        return super().sign(claims, header_type)


threads: list[threading.Thread] = []


@pytest.fixture(scope="module")
def keys() -> dict[str, Signer]:
    return {algorithm: RecordingSigner("k", generate(), algorithm) for algorithm, generate in GENERATE.items()}


@pytest.fixture(autouse=True)
def reset_threads() -> None:
    threads.clear()


async def sign_many(pool: SigningPool, signer: Signer, count: int) -> list[str]:
    signed: dict[int, str] = {}

    async def one(number: int) -> None:
        signed[number] = await pool.sign(signer, {"number": number})

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(one, number)
    return [signed[number] for number in range(count)]


def signed_in_threads() -> int:
    return sum(thread is not threading.main_thread() for thread in threads)


async def test_many_signatures_at_once_are_made_in_a_thread(keys: dict[str, Signer]) -> None:
    pool, signer = SigningPool(1), keys["RS256"]
    for _ in range(3):
        threads.clear()
        assert await sign_many(pool, signer, MANY) == [signer.sign({"number": number}) for number in range(MANY)]
        assert signed_in_threads() == MANY - INLINE_SIGNATURES


class MeetingSigner(Signer, frozen=True):
    """In a thread, it waits for a signature in another thread."""

    meeting = threading.Barrier(2, timeout=60)

    def sign(self, claims: Mapping[str, Any], header_type: str = JWT) -> str:
        if threading.current_thread() is not threading.main_thread():
            self.meeting.wait()
        return super().sign(claims, header_type)


async def test_several_threads_sign_at_the_same_time(keys: dict[str, Signer]) -> None:
    signer = MeetingSigner("k", keys["RS256"].key, "RS256")
    assert len(await sign_many(SigningPool(2), signer, INLINE_SIGNATURES + 4)) == INLINE_SIGNATURES + 4


@pytest.mark.parametrize(
    ("workers", "cores", "threads"), [(1, 1, 0), (1, 2, 1), (2, 2, 0), (3, 2, 0), (1, 8, 7), (2, 8, 3), (3, 8, 2)]
)
def test_workers_share_the_cores_that_none_of_them_uses(workers: int, cores: int, threads: int) -> None:
    assert signing_threads(workers, cores) == threads


async def test_few_signatures_are_made_inline(keys: dict[str, Signer]) -> None:
    await sign_many(SigningPool(1), keys["RS256"], INLINE_SIGNATURES)
    assert signed_in_threads() == 0


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
async def test_cheap_signatures_are_made_inline(keys: dict[str, Signer], algorithm: str) -> None:
    await sign_many(SigningPool(1), keys[algorithm], MANY)
    assert signed_in_threads() == 0


async def test_signatures_are_made_inline_without_a_spare_core(keys: dict[str, Signer]) -> None:
    await sign_many(SigningPool(0), keys["RS256"], MANY)
    assert signed_in_threads() == 0


async def test_error_is_raised_in_its_caller_only(keys: dict[str, Signer]) -> None:
    pool, good = SigningPool(1), []

    async def one(claims: dict[str, Any]) -> None:
        if "bad" in claims:
            with pytest.raises(KeyError):
                await pool.sign(keys["RS256"], claims)
        else:
            good.append(await pool.sign(keys["RS256"], claims))

    async with trio.open_nursery() as nursery:
        for number in range(MANY):
            nursery.start_soon(one, {"bad": 1} if number % 2 else {"number": number})
    assert len(good) == MANY / 2


async def test_cancelled_callers_do_not_block_others(keys: dict[str, Signer]) -> None:
    pool = SigningPool(1)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            for number in range(MANY):
                nursery.start_soon(pool.sign, keys["RS256"], {"number": number})
            await trio.lowlevel.checkpoint()
            scope.cancel()
    assert len(threads) < MANY
    assert len(await sign_many(pool, keys["RS256"], MANY)) == MANY


async def test_signatures_are_made_inline_if_no_thread_can_be_started(
    keys: dict[str, Signer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_start(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    pool = SigningPool(1)
    with monkeypatch.context() as patch:
        patch.setattr(trio.lowlevel, "start_thread_soon", fail_to_start)
        assert len(await sign_many(pool, keys["RS256"], MANY)) == MANY
    assert signed_in_threads() == 0
    assert len(await sign_many(pool, keys["RS256"], MANY)) == MANY
    assert signed_in_threads() > 0
