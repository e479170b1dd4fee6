"""The sender: leases between workers, events that fail, and sending these again."""

import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.change_stream.sequencer import TOPIC
from sso.change_stream.store import MAX_PAGE_BYTES, number_events
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.db.clock_sync import measure_clock
from sso.db.database import Database
from sso.db.statement import Statement
from sso.services import Services, build
from sso.webhooks import operations
from sso.webhooks.delivery_store import DeliveryStore
from sso.webhooks.model import Webhook
from sso.webhooks.sender import FIRST_PAUSE_S, LAST_PAUSE_S, PAGE, retry_policy
from sso.webhooks.webhook_store import add_webhook, get_webhook, list_failed, retry_failed
from tests.kit.open_database import open_database
from tests.kit.webhook_receiver import WebhookReceiver

SECRET = "a secret of the webhook that is long"
_DAYS = 2 * 86_400_000_000
# Everything happened two days ago.
_AGE = (
    Statement(f"UPDATE change_events SET position = position - {_DAYS}"),
    Statement(f"UPDATE change_stream SET last_position = last_position - {_DAYS}, trimmed_to = trimmed_to - {_DAYS}"),
    Statement(f"UPDATE webhooks SET position = position - {_DAYS}"),
)
_FAIL = Statement(
    """INSERT INTO webhook_failures (webhook_id, position, at, type, data, expires)
    VALUES (:webhook_id, 1, now(), 'permissions_changed', :data, now() + interval '1 day')"""
)
_END_LEASES = Statement("UPDATE webhooks SET lease_until = now()")


async def record(database: Database, *user_ids: str) -> None:
    changes = [Change(ChangeType.USER_DISABLED, user_id) for user_id in user_ids]
    await database.transaction(record_changes, changes)
    await database.transaction(number_events)


async def add(services: Services, url: str) -> Webhook:
    webhook = await services.database.transaction(
        add_webhook, services.keyring, url, SECRET, ("users",), disabled=False
    )
    assert webhook is not None
    return webhook


@asynccontextmanager
async def sending(services: Services) -> AsyncIterator[None]:
    """Runs the sender of a worker."""
    await measure_clock(services.database)
    async with trio.open_nursery() as nursery:
        await nursery.start(services.bus.run)
        await nursery.start(services.webhook_sender.run, services.bus)
        yield
        nursery.cancel_scope.cancel()


async def until_received(receiver: WebhookReceiver, count: int) -> list[str]:
    """Returns the users of the received events, when there are so many."""
    with trio.move_on_after(30):
        while len(receiver.deliveries) < count:  # noqa: ASYNC110 - the receiver has threads
            await trio.sleep(0.02)
    return [delivery.event["user_id"] for delivery in list(receiver.deliveries)]


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(60):
        while True:
            if await condition():
                return
            await trio.sleep(0.02)


async def until_failed(services: Services, webhook: Webhook, count: int) -> list[str]:
    """Returns the users of the failed events, when there are so many and none is being sent again."""
    failed: list[dict[str, Any]] = []

    async def is_complete() -> bool:
        failed[:], _ = await list_failed(services.database, webhook.webhook_id, 0, 500)
        return len(failed) == count and not any(item["retrying"] for item in failed)

    await eventually(is_complete)
    return [item["event"]["user_id"] for item in failed]


async def test_event_that_fails_a_day_later_has_failed_and_the_next_one_delivered(
    services: Services, receiver: WebhookReceiver
) -> None:
    webhook = await add(services, receiver.url)
    receiver.refused = {"bad"}
    await record(services.database, "bad", "good")
    for statement in _AGE:
        await services.database.value(statement)
    async with sending(services):
        assert await until_received(receiver, 2) == ["bad", "good"]
        assert await until_failed(services, webhook, 1) == ["bad"]
        stored = await get_webhook(services.database, webhook.webhook_id)
        assert stored is not None
        assert stored.failing_since is None


async def test_old_event_fails_alone_if_the_one_before_it_was_accepted(
    services: Services, receiver: WebhookReceiver
) -> None:
    webhook = await add(services, receiver.url)
    receiver.refused = {"bad", "worse"}
    users = ["bad", "good", "worse", "better"]
    await record(services.database, *users)
    for statement in _AGE:
        await services.database.value(statement)
    async with sending(services):
        assert await until_received(receiver, 4) == users
        assert await until_failed(services, webhook, 2) == ["bad", "worse"]


async def test_old_events_of_a_receiver_that_is_down_fail_together_and_can_be_sent_again(
    services: Services, receiver: WebhookReceiver
) -> None:
    webhook = await add(services, receiver.url)
    receiver.status = 503
    users = [f"u{number}" for number in range(PAGE + 10)]
    await record(services.database, *users)
    for statement in _AGE:
        await services.database.value(statement)
    async with sending(services):
        assert await until_failed(services, webhook, len(users)) == users
        assert await until_received(receiver, 2) == ["u0", "u1"]
        failed, has_more = await list_failed(services.database, webhook.webhook_id, 0, 2)
        assert (len(failed), has_more) == (2, True)
        assert (failed[0]["problem"], failed[0]["tries"], failed[0]["retrying"]) == ("status 503", 1, False)
        # A new event is tried at the next attempt, and an attempt that fails keeps a failed event in the list.
        assert await retry_failed(services.database, webhook.webhook_id, [int(failed[0]["id"])]) == 1
        services.bus.signal("changes")
        assert await until_received(receiver, 3) == ["u0", "u1", "u0"]
        await until_failed(services, webhook, len(users))
        receiver.status = 200
        assert await retry_failed(services.database, webhook.webhook_id, None) == len(users)
        services.bus.signal("changes")
        assert await until_failed(services, webhook, 0) == []
    assert sorted(delivery.event["user_id"] for delivery in receiver.deliveries[3:]) == sorted(users)
    assert all(delivery.is_signed_with(SECRET) for delivery in receiver.deliveries)


async def test_page_of_long_failed_events_is_short_and_the_next_one_follows(
    services: Services, receiver: WebhookReceiver
) -> None:
    webhook = await add(services, receiver.url)
    for length in [MAX_PAGE_BYTES // 3] * 4 + [3 * MAX_PAGE_BYTES, 0, 0]:
        data = {"gained": [secrets.token_hex(length // 2)]}
        await services.database.value(_FAIL, webhook_id=webhook.webhook_id, data=data)
    pages, after, has_more = [], 0, True
    while has_more:
        page, has_more = await list_failed(services.database, webhook.webhook_id, after, 6)
        pages.append(len(page))
        after = int(page[-1]["id"])
    assert pages == [3, 2, 2]
    assert await list_failed(services.database, webhook.webhook_id, after, 6) == ([], False)


async def test_two_workers_deliver_each_event_once_and_in_order(
    dsn: str, settings: Settings, keyring: Keyring, receiver: WebhookReceiver
) -> None:
    async with open_database(dsn, 4) as first, open_database(dsn, 4) as second:
        workers = [build(settings, database, keyring) for database in (first, second)]
        await add(workers[0], receiver.url)
        async with sending(workers[0]), sending(workers[1]):
            for number in range(24):
                await record(first, f"u{number}")
                workers[number % 2].bus.publish("changes")
            assert await until_received(receiver, 24) == [f"u{number}" for number in range(24)]


async def test_lease_that_ended_cannot_move_the_webhook(services: Services, receiver: WebhookReceiver) -> None:
    await add(services, receiver.url)
    await record(services.database, "ann")
    deliveries = DeliveryStore(services.database, services.keyring)
    late = await deliveries.claim()
    assert late is not None
    assert await deliveries.claim() is None
    await services.database.value(_END_LEASES)
    present = await deliveries.claim()
    assert present is not None
    cursor = (await services.change_reader.read("", 10)).next
    assert not await deliveries.mark_delivered(late, cursor)
    assert await deliveries.store_failed(late, cursor, 1, "x") == 0
    assert await deliveries.mark_delivered(present, cursor)
    await deliveries.release(present)
    assert await deliveries.claim() is None


async def test_stopping_worker_returns_its_lease(services: Services, receiver: WebhookReceiver) -> None:
    await add(services, receiver.url)
    receiver.hanging = threading.Event()
    await record(services.database, "ann")
    async with sending(services):
        await until_received(receiver, 1)
    assert await DeliveryStore(services.database, services.keyring).claim() is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_address_of_the_connection_is_checked(
    database: Database, keyring: Keyring, receiver: WebhookReceiver, tmp_path: Path, host: str
) -> None:
    """Also if the URL was accepted before: a name may have got another address since."""
    public = Settings(data_dir=tmp_path, base_url="https://sso.example.com")
    services = build(public, database, keyring)
    webhook = await add(services, f"https://{host}:{receiver.port}/")
    await record(database, "ann")
    async with sending(services):

        async def has_failed() -> bool:
            stored = await get_webhook(database, webhook.webhook_id)
            return stored is not None and bool(stored.problem)

        await eventually(has_failed)
    stored = await get_webhook(database, webhook.webhook_id)
    assert stored is not None
    assert stored.problem == "the address of the host is not allowed"
    assert receiver.deliveries == []


def test_pauses_grow_and_the_first_is_short() -> None:
    pauses = [retry_policy().pause_s(tries) for tries in range(1, 40)]
    assert pauses[0] < 90
    assert FIRST_PAUSE_S * 0.8 <= pauses[0] <= FIRST_PAUSE_S * 1.2
    assert all(LAST_PAUSE_S * 0.8 <= pause <= LAST_PAUSE_S * 1.2 for pause in pauses[10:])
    assert len({retry_policy().pause_s(1) for _ in range(20)}) > 1


async def test_changed_webhook_and_events_that_are_sent_again_wake_the_senders(services: Services) -> None:
    webhook, actor = await add(services, "https://receiver.example.com/"), AuditActor()
    published: list[str] = []
    services.database.publish_topic = published.append
    values = actor, services.keyring, webhook, None, None, ("users",)
    await services.database.transaction(operations.change_webhook, *values, disabled=None)
    assert published == [TOPIC]
    await services.database.transaction(operations.retry_failed, actor, webhook, None)
    assert published == [TOPIC, TOPIC]
