"""The background tasks of a worker."""

import pytest
import trio

from sso import worker
from sso.delivery.due_queue import DueQueue
from sso.keys.keyset import KeySet
from sso.serve.http1.balance import WorkerSlot
from sso.services import Services

LATER = 100  # turns of the event loop


async def test_senders_start_when_the_keys_are_loaded(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """They sign what they send."""
    started = []

    async def load(*_: object, task_status: trio.TaskStatus[None]) -> None:
        for _turn in range(LATER):
            await trio.lowlevel.checkpoint()
        started.append("keys")
        task_status.started()

    async def send(*_: object, task_status: trio.TaskStatus[None]) -> None:
        started.append("sender")
        task_status.started()

    monkeypatch.setattr(KeySet, "run", load)
    monkeypatch.setattr(DueQueue, "run", send)
    async with trio.open_nursery() as background:
        await worker._start_background_tasks(services, background, WorkerSlot())
        background.cancel_scope.cancel()
    assert started[0] == "keys"
    assert "sender" in started
