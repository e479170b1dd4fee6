"""Webhooks: the list with a form for a new one, and the page of a webhook with the events that were not delivered."""

from collections.abc import Mapping
from typing import Any

import orjson
from quart import Blueprint, Response, request

from sso.change_stream.events import ChangeType
from sso.console.export_pages import add_export
from sso.console.form_error import FormError
from sso.console.record_action_pages import add_record_actions
from sso.console.sections import WEBHOOKS
from sso.console.users.form import split_list
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError
from sso.core.ids import secret_token
from sso.webhooks.event_filter import ALL

# The names that select several events, then the events.
GROUP_TEXTS: Mapping[str, str] = {
    ALL: "All events, also those of later versions.",
    "permissions": "Both events about permissions.",
    "users": "All events about users.",
    "keys": "All events about keys and secrets.",
}
EVENT_TEXTS: Mapping[str, str] = {
    ChangeType.PERMISSIONS_CHANGED: "A user has gained or lost rules of an application.",
    ChangeType.APPLICATION_CHANGED: "So many users of an application have, that they are not listed.",
    ChangeType.USER_DISABLED: "A user can no longer sign in.",
    ChangeType.USER_ENABLED: "A disabled user can sign in again.",
    ChangeType.USER_DELETED: "An account was closed, and will be erased.",
    ChangeType.USER_RESTORED: "A closed account is kept after all.",
    ChangeType.USER_ERASED: "A closed account no longer exists.",
    ChangeType.KEY_ROTATED: "The service has a new key that signs tokens.",
    ChangeType.KEY_RETIRED: "Tokens that a key has signed are no longer accepted.",
    ChangeType.APPLICATION_KEY_ADDED: "An application has a new public key, with which its requests are verified.",
    ChangeType.APPLICATION_KEY_REMOVED: "A public key of an application was removed.",
    ChangeType.ACCESS_KEY_CREATED: "An application has a new access key.",
    ChangeType.ACCESS_KEY_DELETED: "An access key of an application no longer works.",
    ChangeType.CLIENT_SECRET_ROTATED: "An OAuth client has a new secret.",
}
ALL_TEXTS: Mapping[str, str] = {**GROUP_TEXTS, **EVENT_TEXTS}

WEBHOOK = "/webhooks/<webhook_id>"
CSV_COLUMNS = ("id", "url", "events", "disabled", "created")


def webhook_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(WEBHOOKS)
    add_export(console, routes, WEBHOOKS, "/webhooks", CSV_COLUMNS)

    @routes.get("")
    async def show_list() -> Response:
        return await webhook_list(await console.open(WEBHOOKS))

    @routes.post("")
    async def create() -> Response:
        """A secret is generated if none is given. It is shown once."""
        visit, form = await console.submitted(WEBHOOKS, "POST", "/webhooks")
        secret = form.get("secret", "") or secret_token()
        body = {"url": form.get("url", "").strip(), "secret": secret, "events": split_list(form.get("events", ""))}
        try:
            created = await visit.call("POST", "/webhooks", body=body)
        except ApiError as error:
            return await webhook_list(visit, values=form, **problem(FormError.of(error)))
        warnings = created.members.get("warnings", ())
        return await webhook_page(
            console, visit, created.members["data"], new_secret=secret, warnings=warnings, is_new=True
        )

    async def webhook_list(visit: ConsoleVisit, **context: Any) -> Response:
        found = await visit.call("GET", "/webhooks", query={"after": request.args.get("after", "")})
        return await console.show(
            visit,
            "webhooks/list.html",
            title="Webhooks",
            webhooks=found.members["data"],
            next=found.members.get("next"),
            event_texts=ALL_TEXTS,
            **{"values": {}, **context},
        )

    webhook_detail_pages(console, routes)
    return routes


def webhook_detail_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<webhook_id>")
    async def show_webhook(webhook_id: str) -> Response:
        visit = await console.open(WEBHOOKS)
        return await webhook_page(console, visit, await visit.data("GET", WEBHOOK, webhook_id=webhook_id))

    @routes.post("/<webhook_id>")
    async def save(webhook_id: str) -> Response:
        visit, form = await console.submitted(WEBHOOKS, "PATCH", WEBHOOK)
        body: dict[str, Any] = {"url": form.get("url", "").strip(), "events": split_list(form.get("events", ""))}
        if form.get("secret"):
            body["secret"] = form["secret"]
        try:
            version = form.get("version") or None
            await visit.call("PATCH", WEBHOOK, webhook_id=webhook_id, body=body, if_match=version)
        except ApiError as error:
            webhook = await visit.data("GET", WEBHOOK, webhook_id=webhook_id)
            return await webhook_page(console, visit, webhook, form, **problem(FormError.of(error)))
        return done(path_of(webhook_id), "webhook-saved")

    add_record_actions(console, routes, WEBHOOKS, WEBHOOK, "webhook")

    @routes.post("/<webhook_id>/retry")
    async def retry(webhook_id: str) -> Response:
        """Sends one failed event again, or all of them."""
        visit, form = await console.submitted(WEBHOOKS, "POST", f"{WEBHOOK}/failed/retry", recent="never")
        body = {"ids": [form["id"]]} if form.get("id") else {}
        await visit.call("POST", f"{WEBHOOK}/failed/retry", webhook_id=webhook_id, body=body)
        return done(path_of(webhook_id), "webhook-retried")


async def webhook_page(
    console: ConsoleView,
    visit: ConsoleVisit,
    webhook: dict[str, Any],
    form: dict[str, str] | None = None,
    **context: Any,
) -> Response:
    query = {"after": request.args.get("after", "")} if request.method == "GET" else {}
    failed = await visit.call("GET", f"{WEBHOOK}/failed", webhook_id=webhook["id"], query=query)
    stored = {name: value for name, value in webhook.items() if name != "delivery"}
    values = {"url": webhook["url"], "events": " ".join(webhook["events"])}
    return await console.show(
        visit,
        "webhooks/webhook.html",
        title=webhook["url"],
        webhook=webhook,
        base=path_of(webhook["id"]),
        failed=[one | {"content": orjson.dumps(one["event"]).decode()} for one in failed.members["data"]],
        next=failed.members.get("next"),
        event_texts=ALL_TEXTS,
        values=values | ({name: form[name] for name in values if name in form} if form else {}),
        version=form["version"] if form and "version" in form else version_of(stored),
        **context,
    )


def path_of(webhook_id: str) -> str:
    return f"{WEBHOOKS.path}/{webhook_id}"
