"""Signatures beside the event loop."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from sso.core.jwt import Signer
from sso.core.keys import GENERATE
from sso.keys.signing_pool import INLINE_SIGNATURES, SigningPool

MANY = 3 * INLINE_SIGNATURES


class Watched(Signer):
    """Tells where it was asked to sign."""

    def sign(self, claims: Mapping[str, Any]) -> str:
        threads.append(threading.current_thread())
        if "bad" in claims:
            raise KeyError("bad")
        return super().sign(claims)


threads: list[threading.Thread] = []


@pytest.fixture(scope="module")
def keys() -> dict[str, Signer]:
    return {algorithm: Watched("k", generate(), algorithm) for algorithm, generate in GENERATE.items()}


@pytest.fixture(autouse=True)
def nobody_yet() -> None:
    threads.clear()


async def sign_many(aside: SigningPool, signer: Signer, count: int) -> list[str]:
    signed: dict[int, str] = {}

    async def one(number: int) -> None:
        signed[number] = await aside.sign(signer, {"number": number})

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(one, number)
    return [signed[number] for number in range(count)]


def elsewhere() -> int:
    return sum(thread is not threading.main_thread() for thread in threads)


async def test_of_many_at_once_all_but_a_few_are_made_in_a_thread(keys: dict[str, Signer]) -> None:
    aside, signer = SigningPool(spare_core=True), keys["RS256"]
    for _ in range(3):
        threads.clear()
        assert await sign_many(aside, signer, MANY) == [signer.sign({"number": number}) for number in range(MANY)]
        assert elsewhere() == MANY - INLINE_SIGNATURES
        await trio.sleep(0.01)


async def test_a_few_are_made_on_the_spot(keys: dict[str, Signer]) -> None:
    await sign_many(SigningPool(spare_core=True), keys["RS256"], INLINE_SIGNATURES)
    assert elsewhere() == 0


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
async def test_a_cheap_signature_is_made_on_the_spot(keys: dict[str, Signer], algorithm: str) -> None:
    await sign_many(SigningPool(spare_core=True), keys[algorithm], MANY)
    assert elsewhere() == 0


async def test_where_no_core_is_left_all_are_made_on_the_spot(keys: dict[str, Signer]) -> None:
    await sign_many(SigningPool(spare_core=False), keys["RS256"], MANY)
    assert elsewhere() == 0


async def test_an_error_is_for_whom_it_concerns(keys: dict[str, Signer]) -> None:
    aside, good = SigningPool(spare_core=True), []

    async def one(claims: dict[str, Any]) -> None:
        if "bad" in claims:
            with pytest.raises(KeyError):
                await aside.sign(keys["RS256"], claims)
        else:
            good.append(await aside.sign(keys["RS256"], claims))

    async with trio.open_nursery() as nursery:
        for number in range(MANY):
            nursery.start_soon(one, {"bad": 1} if number % 2 else {"number": number})
    assert len(good) == MANY / 2


async def test_callers_who_are_called_off_leave_the_way_free_for_others(keys: dict[str, Signer]) -> None:
    aside = SigningPool(spare_core=True)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            for number in range(MANY):
                nursery.start_soon(aside.sign, keys["RS256"], {"number": number})
            await trio.lowlevel.checkpoint()
            scope.cancel()
    assert len(threads) < MANY
    assert len(await sign_many(aside, keys["RS256"], MANY)) == MANY


async def test_without_a_thread_all_are_made_on_the_spot(
    keys: dict[str, Signer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    aside = SigningPool(spare_core=True)
    with monkeypatch.context() as patch:
        patch.setattr(trio.lowlevel, "start_thread_soon", none_left)
        assert len(await sign_many(aside, keys["RS256"], MANY)) == MANY
    assert elsewhere() == 0
    assert len(await sign_many(aside, keys["RS256"], MANY)) == MANY
    assert elsewhere() > 0
