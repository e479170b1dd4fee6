"""/api/admin/webhooks: settings of webhooks, and addresses that are refused."""

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.kit.server import Server
from tests.kit.webhook_receiver import WebhookReceiver
from tests.perm.endpoints.conftest import Studio
from tests.webhooks.conftest import SECRET, AddWebhook, set_disabled


def test_webhook_is_listed_changed_and_deleted_without_its_secret(
    root: Administrator, server: Server, add_webhook: AddWebhook
) -> None:
    created = add_webhook("https://tools.example.com/hook?from=sso", events=["permissions", "user_disabled"])
    path = f"/webhooks/{created['id']}"
    assert created["events"] == ["permissions", "user_disabled"]
    assert created in root.data("/webhooks", limit=200)
    read = root.get(path)
    assert read.json()["data"] == created
    stale = root.request("PATCH", path, {"If-Match": '"x"'}, json={"events": []})
    assert stale.status_code == 412
    changed = root.request("PATCH", path, {"If-Match": read.headers["ETag"]}, json={"events": [], "disabled": True})
    assert (changed.json()["data"]["events"], changed.json()["data"]["disabled"]) == ([], True)
    assert changed.headers["ETag"] != read.headers["ETag"]
    assert root.request("PATCH", path, json={"secret": "another secret of the webhook"}).status_code == 200
    assert root.request("DELETE", path, {"If-Match": read.headers["ETag"]}).status_code == 412
    assert root.request("DELETE", path).status_code == 200
    assert root.get(path).status_code == 404
    entries = root.data("/audit", target=created["id"])
    operations = ["webhook.delete", "webhook.save", "webhook.save", "webhook.create"]
    assert [entry["operation"] for entry in entries] == operations
    shown = [read.text, changed.text, str(entries), server.log()]
    assert not any(secret in text for secret in (SECRET, "another secret of the webhook") for text in shown)


def test_short_secret_is_accepted_with_a_warning(root: Administrator) -> None:
    response = root.request("POST", "/webhooks", json={"url": "https://tools.example", "secret": "short"})
    assert response.status_code == 201
    assert "secret" in response.json()["warnings"][0]
    assert root.request("DELETE", f"/webhooks/{response.json()['data']['id']}").status_code == 200


@pytest.mark.parametrize(
    "url",
    [
        "https://10.0.0.1/hook",
        "https://192.168.1.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a00:1]/",
        "https://0.0.0.0/",
        "https://167772161/",  # 10.0.0.1 as a number
        "https://0x0a000001/",
        "https://224.0.0.1/",
        "http://10.0.0.1/hook",
        "http://tools.example.com/",
        "ftp://tools.example.com/",
        "https://user:password@tools.example.com/",
        "https://",
        "/hook",
        "https://tools.example.com/#x",
    ],
)
def test_internal_and_unusable_addresses_are_refused(root: Administrator, url: str) -> None:
    response = root.request("POST", "/webhooks", json={"url": url, "secret": SECRET})
    assert response.status_code == 400, response.text
    assert response.json()["error"].startswith("url: ")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"secret": SECRET}, "url"),
        ({"url": "https://tools.example"}, "secret"),
        ({"url": "https://tools.example", "secret": ""}, "secret"),
        ({"url": "https://tools.example", "secret": "x" * 513}, "secret"),
        ({"url": "https://tools.example", "secret": SECRET, "events": ["user_renamed"]}, "events"),
        ({"url": "https://tools.example", "secret": SECRET, "events": "users"}, "events"),
        ({"url": "https://tools.example", "secret": SECRET, "name": "x"}, "name"),
        ({"url": "https://tools.example", "secret": SECRET, "disabled": 1}, "disabled"),
    ],
)
def test_wrong_fields_are_400_and_named(root: Administrator, body: dict[str, object], field: str) -> None:
    response = root.request("POST", "/webhooks", json=body)
    assert response.status_code == 400
    assert field in response.json()["error"]
    assert SECRET not in response.text


def test_unknown_webhook_is_404(root: Administrator) -> None:
    for webhook_id in ("x", "%00", "%FF", "%ED%A0%80", "..", "x" * 2000, "🔑"):
        for method, path, body in (
            ("GET", "", None),
            ("PATCH", "", {"events": []}),
            ("DELETE", "", None),
            ("GET", "/failed", None),
            ("POST", "/failed/retry", {"ids": ["1"]}),
        ):
            response = root.request(method, f"/webhooks/{webhook_id}{path}", json=body)
            assert response.status_code in (400, 404, 405), (webhook_id, method, path, response.text)


def test_failed_events_take_valid_ids_and_cursors_only(
    root: Administrator, receiver: WebhookReceiver, add_webhook: AddWebhook
) -> None:
    path = f"/webhooks/{add_webhook(receiver.url)['id']}/failed"
    assert root.get(path).json() == {"status": "OK", "data": [], "next": None}
    assert root.get(path, after="x").status_code == 400
    assert root.request("POST", f"{path}/retry").json()["data"] == {"events": 0}
    for ids in (["x"], [1], ["9" * 19], "1", ["-1"]):
        assert root.request("POST", f"{path}/retry", json={"ids": ids}).status_code == 400, ids


def test_right_is_required_and_includes_reading_changes(studio: Studio) -> None:
    holder, other = administrator(studio, "can_manage_webhooks"), administrator(studio, "can_view_changes")
    assert holder.get("/webhooks").status_code == 200
    assert holder.get("/changes").status_code == 200
    refused = other.request("POST", "/webhooks", json={"url": "https://tools.example", "secret": SECRET})
    assert (refused.status_code, refused.json()["error"]) == (403, "can_manage_webhooks is required")


def test_disabled_webhook_gets_nothing_and_continues_with_later_events(
    studio: Studio, root: Administrator, receiver: WebhookReceiver, add_webhook: AddWebhook
) -> None:
    user, other = studio.user(), studio.user()
    path = f"/webhooks/{add_webhook(receiver.url, disabled=True)['id']}"
    set_disabled(root, user.user_id, True)
    set_disabled(root, user.user_id, False)
    cursor = root.get("/changes", wait=20).json()["next"]
    while root.get("/changes", after=cursor, limit=200).json()["data"]:
        cursor = root.get("/changes", after=cursor, limit=200).json()["next"]
    assert root.request("PATCH", path, json={"disabled": False}).status_code == 200
    set_disabled(root, other.user_id, True)
    assert [event["type"] for event in receiver.wait_for(other.user_id, 1)] == ["user_disabled"]
    assert receiver.events_of(user.user_id) == []
