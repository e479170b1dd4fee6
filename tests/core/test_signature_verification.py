"""Costly verifications run in one thread, in turns between clients, and a bounded number of them waits."""

import threading
from collections.abc import Callable

import pytest
import trio
import trio.testing
from cryptography.hazmat.primitives.asymmetric import rsa

from sso.core.errors import ServerBusy
from sso.core.fair_thread import MAX_CLIENTS
from sso.core.keys import GENERATE, PublicKey
from sso.core.net import Address, parse_address
from sso.core.signature_verification import MAX_WAITING_PER_CLIENT, SignatureVerificationPool

CHEAP = rsa.RSAPublicNumbers(65537, 1 << 2047 | 1).public_key()
COSTLY = rsa.RSAPublicNumbers(2**32 - 1, 1 << 8191 | 1).public_key()
ANN, BOB = parse_address("192.0.2.1"), parse_address("192.0.2.2")


class Gate:
    """Work that blocks until the gate is opened, and the order in which it was done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self._open = threading.Event()

    def work(self, name: str) -> None:
        self._open.wait(60)
        self.done.append(name)

    def open(self) -> None:
        self._open.set()


@pytest.mark.parametrize("key", [CHEAP, GENERATE["ES256"]().public_key(), GENERATE["EdDSA"]().public_key()])
async def test_cheap_keys_are_verified_on_the_event_loop(key: PublicKey) -> None:
    assert await SignatureVerificationPool().run(ANN, key, threading.get_ident) == threading.get_ident()


async def test_costly_keys_are_verified_in_a_thread() -> None:
    assert await SignatureVerificationPool().run(ANN, COSTLY, threading.get_ident) != threading.get_ident()


async def test_error_of_a_verification_reaches_its_caller_and_releases_the_lock() -> None:
    pool = SignatureVerificationPool()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await pool.run(ANN, COSTLY, divmod, 1, 0)
    assert await pool.run(ANN, COSTLY, divmod, 7, 2) == (3, 1)
    assert not pool._thread._locks


async def test_client_delays_another_client_by_one_verification() -> None:
    pool, gate = SignatureVerificationPool(), Gate()
    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(pool.run, ANN, COSTLY, gate.work, f"ann {number}")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(pool.run, BOB, COSTLY, gate.work, "bob")
        await trio.testing.wait_all_tasks_blocked()
        gate.open()
    assert len(gate.done) == 6
    assert gate.done[1] == "bob"
    assert not pool._thread._locks


@pytest.mark.parametrize(
    "others",
    [lambda n: parse_address("192.0.2.1"), lambda n: parse_address(f"2001:db8:0:{n}::1")],
    ids=["IPv4", "IPv6"],
)
async def test_number_of_waiting_verifications_per_client_is_limited(others: Callable[[int], Address]) -> None:
    """All addresses of an IPv6 /48 are one client."""
    pool, gate = SignatureVerificationPool(), Gate()
    async with trio.open_nursery() as nursery:
        for number in range(1 + MAX_WAITING_PER_CLIENT):
            nursery.start_soon(pool.run, others(number), COSTLY, gate.work, "x")
        await trio.testing.wait_all_tasks_blocked()
        for number in range(3):
            with pytest.raises(ServerBusy):
                await pool.run(others(number), COSTLY, gate.work, "refused")
        nursery.start_soon(pool.run, BOB, COSTLY, gate.work, "bob")
        await trio.testing.wait_all_tasks_blocked()
        gate.open()
    assert gate.done.count("x") == 1 + MAX_WAITING_PER_CLIENT
    assert gate.done[1] == "bob"
    assert "refused" not in gate.done
    assert not pool._thread._locks


async def test_number_of_waiting_clients_is_limited() -> None:
    pool, gate = SignatureVerificationPool(), Gate()
    async with trio.open_nursery() as nursery:
        for number in range(MAX_CLIENTS):
            nursery.start_soon(pool.run, parse_address(f"10.0.{number >> 8}.{number & 255}"), COSTLY, gate.work, "x")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(ServerBusy) as caught:
            await pool.run(BOB, COSTLY, gate.work, "refused")
        assert caught.value.headers == {"Retry-After": "1"}
        assert await pool.run(BOB, CHEAP, abs, -1) == 1
        gate.open()
    assert gate.done == ["x"] * MAX_CLIENTS
    assert not pool._thread._locks


async def test_cancelled_verification_does_not_run() -> None:
    pool, gate = SignatureVerificationPool(), Gate()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.run, ANN, COSTLY, gate.work, "ann")
        await trio.testing.wait_all_tasks_blocked()
        async with trio.open_nursery() as leaving:
            for client in (ANN, BOB):
                leaving.start_soon(pool.run, client, COSTLY, gate.work, "left")
            await trio.testing.wait_all_tasks_blocked()
            leaving.cancel_scope.cancel()
        gate.open()
    assert gate.done == ["ann"]
    assert not pool._thread._locks
