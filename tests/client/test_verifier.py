"""The verifier of user JWTs fetches the keys for all callers, whatever becomes of the one that began."""

import asyncio
import base64
import json
from contextlib import suppress

import anyio
import httpx
import pytest

from sso.client import AsyncPlayerVerifier, PlayerRefused


def unsigned_jwt(kid: str) -> str:
    parts: tuple[object, ...] = ({"alg": "EdDSA", "kid": kid}, {}, "signature")
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)


class SlowTransport(httpx.AsyncBaseTransport):
    """Holds each request for the key set until the test releases it."""

    def __init__(self) -> None:
        self.asked, self.answer = anyio.Event(), anyio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.set()
        await self.answer.wait()
        return httpx.Response(200, stream=httpx.ByteStream(b'{"keys": []}'))


async def expect_a_key_set(verifier: AsyncPlayerVerifier) -> None:
    with pytest.raises(PlayerRefused) as refused:
        await verifier.verify(unsigned_jwt("another"))
    assert refused.value.reason == "unknown_key"  # without a set, it would be unavailable
    await verifier.close()


async def _cancel_the_scope_of_the_first_caller() -> None:
    transport = SlowTransport()
    verifier = AsyncPlayerVerifier("http://sso", clock=lambda: 1000.0, transport=transport)

    async def verify() -> None:
        with suppress(PlayerRefused):  # Trio may notice the cancellation later
            await verifier.verify(unsigned_jwt("invented"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(verify)
        await transport.asked.wait()
        tasks.cancel_scope.cancel()
        transport.answer.set()
    await expect_a_key_set(verifier)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_keys_arrive_although_the_scope_of_the_caller_is_cancelled(backend: str) -> None:
    anyio.run(_cancel_the_scope_of_the_first_caller, backend=backend)


async def _cancel_the_task_of_the_first_caller() -> None:
    transport = SlowTransport()
    verifier = AsyncPlayerVerifier("http://sso", clock=lambda: 1000.0, transport=transport)
    first = asyncio.create_task(verifier.verify(unsigned_jwt("invented")))
    await transport.asked.wait()
    first.cancel()
    await asyncio.sleep(0)  # the task gets its cancellation
    transport.answer.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    await expect_a_key_set(verifier)


def test_keys_arrive_although_the_asyncio_task_of_the_caller_is_cancelled() -> None:
    asyncio.run(_cancel_the_task_of_the_first_caller())
