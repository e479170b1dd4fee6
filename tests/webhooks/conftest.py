"""Callers of the management API, a receiver, and webhooks that end with their test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.admin.conftest import Administrator, root, studio
from tests.kit.webhook_receiver import WebhookReceiver, webhook_receiver

__all__ = ["root", "studio"]

SECRET = "a secret of the webhook that is long"
AddWebhook = Callable[..., dict[str, Any]]


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as receiver:
        yield receiver


@pytest.fixture
def add_webhook(root: Administrator) -> Iterator[AddWebhook]:
    """Adds a webhook for events of users; it is deleted after the test."""
    added: list[str] = []

    def add(url: str, **fields: Any) -> dict[str, Any]:
        body = {"url": url, "secret": SECRET, "events": ["users"], **fields}
        response = root.request("POST", "/webhooks", json=body)
        assert response.status_code == 201, response.text
        webhook: dict[str, Any] = response.json()["data"]
        added.append(webhook["id"])
        return webhook

    yield add
    for webhook_id in added:
        assert root.request("DELETE", f"/webhooks/{webhook_id}").status_code in (200, 404)


def set_disabled(root: Administrator, user_id: str, disabled: bool) -> None:
    response = root.request("PATCH", f"/users/{user_id}", json={"disabled": disabled})
    assert response.status_code == 200, response.text
