"""Delivery of logout notifications: retries, receivers that misbehave, several senders, and refused addresses."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from sso.backchannel_logout.sender import LIMITS, MAX_TRIES, build_logout_sender
from sso.backchannel_logout.store import end_site_sessions
from sso.config import Settings
from sso.core.net import parse_network
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.delivery.due_queue import DueQueue
from sso.doctor.checks import check
from sso.mail.outbox import TOPIC
from sso.services import Services
from tests.kit.builders import add_user
from tests.kit.conditions import until_true
from tests.kit.logout_receiver import LogoutReceiver, logout_receiver
from tests.kit.silent_host import silent_host
from tests.kit.smtp import make_certificate
from tests.oauth.in_process import apply_client

_ADD_SITE_SESSION = Statement(
    """INSERT INTO oauth_site_sessions (sid, client_id, user_id, expires)
    VALUES (:sid, :client_id, :user_id, now() + interval '1 day')"""
)
_ALL = Statement("SELECT * FROM logout_notifications ORDER BY id")
_MAKE_DUE = Statement("UPDATE logout_notifications SET next_try = now() WHERE next_try IS NOT NULL")
_SET_TRIES = Statement("UPDATE logout_notifications SET tries = :tries")


async def end_sessions(services: Services, uri: str, count: int = 1, client_id: str = "shop", **fields: Any) -> None:
    """Lets a user sign in to a site ``count`` times, and ends these sessions."""
    await apply_client(services, client_id=client_id, profile="oidc", backchannel_logout_uri=uri, **fields)
    user = await add_user(services, login=f"{client_id}{count}@example.com")
    for number in range(count):
        values = {"sid": f"{client_id}-{number}", "client_id": client_id, "user_id": user.user_id}
        await services.database.value(_ADD_SITE_SESSION, **values)
    await services.database.transaction(end_site_sessions, user.user_id)


@asynccontextmanager
async def sending(services: Services, *senders: DueQueue) -> AsyncIterator[None]:
    """Runs the senders; all tests wake them by ``services.bus.rescan()``."""
    async with trio.open_nursery() as nursery:
        for sender in senders or (services.logout_sender,):
            await nursery.start(sender.run, services.bus)
        yield
        nursery.cancel_scope.cancel()


async def notifications(services: Services) -> list[Any]:
    return await services.database.rows(_ALL)


async def make_due(services: Services) -> None:
    await services.database.value(_MAKE_DUE)
    services.bus.rescan()


async def until_queue(services: Services, **expected: Any) -> None:
    """Waits until the only notification has these values."""
    await until_queued(
        services,
        lambda rows: len(rows) == 1 and all(rows[0][name] == value for name, value in expected.items()),
    )


async def until_empty(services: Services) -> None:
    await until_queued(services, lambda rows: not rows)


async def until_queued(services: Services, condition: Callable[[list[Any]], bool]) -> None:
    with trio.fail_after(60):
        while not condition(await notifications(services)):  # noqa: ASYNC110 - the table has no event
            await trio.sleep(0.03)


async def test_notification_is_queued_only_if_the_transaction_commits(services: Services) -> None:
    await apply_client(services, profile="oidc", backchannel_logout_uri="https://shop.example.com/")
    user = await add_user(services)
    await services.database.value(_ADD_SITE_SESSION, sid="1", client_id="shop", user_id=user.user_id)

    async def fail(tx: Transaction) -> None:
        await end_site_sessions(tx, user.user_id)
        raise KeyError

    with pytest.raises(KeyError):
        await services.database.transaction(fail)
    assert await notifications(services) == []
    await services.database.transaction(end_site_sessions, user.user_id)
    assert len(await notifications(services)) == 1


async def test_senders_are_woken_if_a_site_is_notified(services: Services, receiver: LogoutReceiver) -> None:
    user = await add_user(services)
    published: list[str] = []
    services.database.publish_topic = published.append
    await services.database.transaction(end_site_sessions, user.user_id)
    assert published == []
    await end_sessions(services, receiver.uri)
    assert published == [TOPIC]


async def test_failed_notification_is_retried_until_the_site_accepts_it(
    services: Services, receiver: LogoutReceiver
) -> None:
    receiver.status = 503
    await end_sessions(services, receiver.uri)
    with capture_logs() as logs:
        async with sending(services):
            await until_queue(services, tries=1, problem="status 503")
            receiver.status = 404
            await make_due(services)
            await until_queue(services, tries=2, problem="status 404")
            receiver.status = 204
            await make_due(services)
            await until_empty(services)
    failed = [entry for entry in logs if entry["event"] == "queue.delivery_failed"]
    assert [entry["retry_after_s"] for entry in failed] == [5.0, 15.0]
    assert logs[-1]["event"] == "logout.notification_delivered"
    assert len({request.token for request in receiver.requests}) == 3  # each has a jti of its own


async def test_notification_fails_after_the_last_try(services: Services, settings: Settings, dsn: str) -> None:
    with silent_host() as host:
        port = host.port
    await end_sessions(services, f"http://127.0.0.1:{port}/")
    await services.database.value(_SET_TRIES, tries=MAX_TRIES - 1)
    with capture_logs() as logs:
        async with sending(services):
            await until_queue(services, tries=MAX_TRIES, next_try=None, problem="ConnectError")
            await make_due(services)
    (failed,) = (entry for entry in logs if entry["log_level"] == "error")
    assert (failed["event"], failed["queue"], failed["client"]) == ("queue.delivery_failed", "logout", "shop")
    assert failed["retry_after_s"] is None
    findings = await trio.to_thread.run_sync(lambda: {finding.name: finding for finding in check(settings, dsn)})
    finding = findings["logout notifications"]
    assert not finding.good
    assert finding.detail == "failed in the last days: 1 to shop (ConnectError)"


async def test_redirect_is_not_followed(services: Services, receiver: LogoutReceiver) -> None:
    with logout_receiver() as other:
        receiver.status, receiver.headers = 307, {"Location": other.uri}
        await end_sessions(services, receiver.uri)
        async with sending(services):
            await until_queue(services, tries=1, problem="status 307")
        assert other.requests == []


async def test_body_of_the_answer_is_not_read(services: Services, receiver: LogoutReceiver) -> None:
    receiver.endless = True
    await end_sessions(services, receiver.uri)
    async with sending(services):
        await until_empty(services)


async def test_silent_site_does_not_hold_up_others(services: Services, receiver: LogoutReceiver) -> None:
    with silent_host() as host:
        await end_sessions(services, f"http://127.0.0.1:{host.port}/", LIMITS.max_requests, client_id="silent")
        await end_sessions(services, receiver.uri)
        async with sending(services):
            await until_true(lambda: len(receiver.requests) == 1)
            rows = [row for row in await notifications(services) if row["client_id"] == "silent"]
            assert sum(row["tries"] for row in rows) < LIMITS.max_requests  # they do not take all places
            await until_queued(
                services, lambda rows: any(row["problem"] == "no answer within 5 seconds" for row in rows)
            )


async def test_two_senders_send_each_notification_once(
    services: Services, settings: Settings, receiver: LogoutReceiver
) -> None:
    count = 15
    await end_sessions(services, receiver.uri, count)
    other = build_logout_sender(settings, services.database, services.keys)
    async with sending(services, services.logout_sender, other):
        await until_empty(services)
    assert len(receiver.requests) == count


async def test_notification_of_a_killed_worker_is_sent_again(services: Services, receiver: LogoutReceiver) -> None:
    with silent_host() as host:
        await end_sessions(services, f"http://127.0.0.1:{host.port}/")
        async with sending(services):
            await until_queue(services, tries=1)  # claimed, and cancelled before the answer
    await apply_client(services, profile="oidc", backchannel_logout_uri=receiver.uri)
    other = build_logout_sender(services.settings, services.database, services.keys)
    async with sending(services, other):
        assert receiver.requests == []
        await make_due(services)
        await until_empty(services)
    assert len(receiver.requests) == 1


async def test_notification_whose_last_try_was_interrupted_fails(services: Services, receiver: LogoutReceiver) -> None:
    await end_sessions(services, receiver.uri)
    await services.database.value(_SET_TRIES, tries=MAX_TRIES)
    async with sending(services):
        await until_queue(services, next_try=None, problem="the last attempt was interrupted")
    assert receiver.requests == []


@pytest.mark.parametrize("fields", [{"backchannel_logout_uri": ""}, {"disabled": True}])
async def test_notification_of_a_site_that_no_longer_wants_it_is_dropped(
    services: Services, receiver: LogoutReceiver, fields: dict[str, Any]
) -> None:
    await end_sessions(services, receiver.uri)
    await apply_client(services, **fields)
    async with sending(services):
        await until_empty(services)
    assert receiver.requests == []


async def test_refused_address_fails_at_once(services: Services, settings: Settings, receiver: LogoutReceiver) -> None:
    public = replace(settings, base_url="https://sso.example.com")
    sender = build_logout_sender(public, services.database, services.keys)
    await end_sessions(services, receiver.uri_at("localhost").replace("http:", "https:"))
    async with sending(services, sender):
        await until_queue(services, tries=1, next_try=None, problem="the address of the host is not allowed")
    assert receiver.requests == []


async def test_http_is_refused_unless_the_base_url_is_a_loopback_address(
    services: Services, settings: Settings, receiver: LogoutReceiver
) -> None:
    networks = (parse_network("127.0.0.0/8"),)
    public = replace(settings, base_url="https://sso.example.com", backchannel_networks=networks)
    sender = build_logout_sender(public, services.database, services.keys)
    await end_sessions(services, receiver.uri)
    async with sending(services, sender):
        await until_queue(services, tries=1, next_try=None)
    assert receiver.requests == []


@pytest.mark.parametrize(("host", "is_accepted"), [("localhost", True), ("other.example.com", False)])
async def test_certificate_of_the_site_is_verified(
    services: Services, settings: Settings, tmp_path: Path, host: str, is_accepted: bool
) -> None:
    certificate = make_certificate(tmp_path / "tls", host)
    private = replace(
        settings,
        base_url="https://sso.example.com",
        backchannel_networks=(parse_network("127.0.0.1"),),
        backchannel_ca_file=certificate.ca_file,
    )
    sender = build_logout_sender(private, services.database, services.keys)
    with logout_receiver(certificate.chain_file) as receiver:
        await end_sessions(services, receiver.uri_at("localhost"))
        async with sending(services, sender):
            if is_accepted:
                await until_empty(services)
            else:
                await until_queue(services, tries=1, problem="ConnectError")
    assert len(receiver.requests) == is_accepted
