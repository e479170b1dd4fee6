"""Deliveries by a server with two workers to a receiver that accepts, fails, hangs, redirects and never ends."""

import threading
import time
from collections.abc import Iterator

import pytest

from sso.webhooks.sender import LIMITS
from tests.admin.conftest import Administrator
from tests.kit.constants import changed
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until
from tests.kit.webhook_receiver import WebhookReceiver, webhook_receiver
from tests.perm.endpoints.conftest import Studio
from tests.webhooks.conftest import SECRET, AddWebhook, set_disabled


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that repeats failed deliveries early."""
    dsn = postgres_server.fresh()
    settings = QUICK | {"SSO_DATABASE_URL": dsn, "SSO_WORKERS": "2", "SSO_RATE_LOGIN": "0"}
    settings |= changed({"sso.webhooks.sender.FIRST_PAUSE_S": 3})
    with running(tmp_path_factory.mktemp("server"), **settings) as server:
        yield server
    postgres_server.drop(dsn)


def toggle(root: Administrator, user_id: str, times: int) -> None:
    for number in range(times):
        set_disabled(root, user_id, number % 2 == 0)


def test_events_are_delivered_once_in_order_and_signed(
    studio: Studio, root: Administrator, receiver: WebhookReceiver, add_webhook: AddWebhook
) -> None:
    user = studio.user()
    add_webhook(receiver.url)
    toggle(root, user.user_id, 8)
    events = receiver.wait_for(user.user_id, 8)
    assert [event["type"] for event in events] == ["user_disabled", "user_enabled"] * 4
    ids = [event["id"] for event in events]
    assert ids == sorted(set(ids))
    for delivery in receiver.deliveries:
        assert delivery.is_signed_with(SECRET)
        assert not delivery.is_signed_with("another secret")
        assert delivery.headers["Content-Type"] == "application/json"
        assert delivery.headers["Webhook-Id"] == delivery.event["id"]
        assert delivery.headers["Webhook-Event"] == delivery.event["type"]


def test_filter_selects_types(
    studio: Studio, root: Administrator, receiver: WebhookReceiver, add_webhook: AddWebhook
) -> None:
    user = studio.user()
    add_webhook(receiver.url, events=["user_enabled"])
    toggle(root, user.user_id, 4)
    assert [event["type"] for event in receiver.wait_for(user.user_id, 2)] == ["user_enabled"] * 2
    assert {delivery.event["type"] for delivery in receiver.deliveries} == {"user_enabled"}


def test_failed_delivery_is_repeated_within_90_seconds_and_later_events_wait(
    studio: Studio, root: Administrator, receiver: WebhookReceiver, add_webhook: AddWebhook
) -> None:
    """A redirect is not followed, and counts as a failure. Other webhooks are not delayed."""
    user = studio.user()
    with webhook_receiver() as other, webhook_receiver() as target:
        webhook = add_webhook(receiver.url)
        add_webhook(other.url)
        receiver.status, receiver.headers = 302, {"Location": target.url}
        toggle(root, user.user_id, 2)
        assert len(other.wait_for(user.user_id, 2)) == 2
        (first,) = receiver.wait_for(user.user_id, 1)
        path = f"/webhooks/{webhook['id']}"
        assert until(lambda: root.data(path)["delivery"]["failing"])
        delivery = root.data(path)["delivery"]
        assert (delivery["problem"], delivery["tries"]) == ("status 302", 1)
        receiver.status, receiver.headers = 200, {}
        events = receiver.wait_for(user.user_id, 3, 90)
        assert [event["id"] for event in events[:2]] == [first["id"]] * 2
        assert [event["type"] for event in events] == ["user_disabled", "user_disabled", "user_enabled"]
        assert target.deliveries == []
        assert until(lambda: root.data(path)["delivery"] == {"failing": False})


def test_receiver_that_hangs_delays_only_itself(
    studio: Studio, root: Administrator, receiver: WebhookReceiver, add_webhook: AddWebhook
) -> None:
    user = studio.user()
    with webhook_receiver() as quick:
        receiver.hanging = threading.Event()
        webhook = add_webhook(receiver.url)
        add_webhook(quick.url)
        began = time.monotonic()
        toggle(root, user.user_id, 2)
        assert len(quick.wait_for(user.user_id, 2)) == 2
        assert quick.deliveries[-1].received - began < LIMITS.timeout_s
        assert until(lambda: root.data(f"/webhooks/{webhook['id']}")["delivery"]["failing"])
        assert "no answer" in root.data(f"/webhooks/{webhook['id']}")["delivery"]["problem"]
        assert len(receiver.events_of(user.user_id)) == 1


def test_endless_answer_is_not_read(
    studio: Studio, root: Administrator, receiver: WebhookReceiver, add_webhook: AddWebhook
) -> None:
    user = studio.user()
    receiver.status, receiver.endless = 200, True
    add_webhook(receiver.url)
    toggle(root, user.user_id, 2)
    assert [event["type"] for event in receiver.wait_for(user.user_id, 2)] == ["user_disabled", "user_enabled"]
