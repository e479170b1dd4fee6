"""The background tasks of a worker."""

import pytest
import trio

from sso import worker
from sso.db.statement import Statement
from sso.delivery.due_queue import DueQueue
from sso.keys.keyset import KeySet
from sso.serve.http1.balance import WorkerSlot
from sso.serve.server_limits import ServerLimits
from sso.services import Services
from tests.kit.builders import add_user

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


async def test_what_requests_have_left_is_stored_although_one_does_not_end(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor kills a worker that does not end in time."""
    monkeypatch.setattr(ServerLimits, "drain_s", 0.01)
    user, stop, never_served = await add_user(services), trio.Event(), trio.Event()
    services.password_login.rate_limiter.failed_logins.add(user.user_id, "192.0.2.1")
    stop.set()
    await worker._store_accepted(services, stop, never_served)
    count = Statement("SELECT count(*) FROM account_events WHERE user_id = :user_id AND kind = 'sign_in_failed'")
    assert await services.database.value(count, user_id=user.user_id) == 1
