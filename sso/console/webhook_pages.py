"""Webhooks: the list, the form for a new one, and the page of a webhook with the events that were not delivered."""

from collections.abc import Mapping
from typing import Any

import orjson
from quart import Blueprint, Response, request

from sso.admin.request import AdminResponse
from sso.change_stream.events import ChangeType
from sso.console.deletion_pages import Consequences, DeletionPage, StoredRecord, add_deletion
from sso.console.form_pages import Form, FormPage, add_actions, add_form, new_record, record_actions
from sso.console.form_values import split_list
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.sections import WEBHOOKS
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
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
    ChangeType.USER_BANNED: "A user was banned, everywhere or in one place.",
    ChangeType.USER_UNBANNED: "A ban of a user was lifted, or has ended.",
    ChangeType.USER_DELETED: "An account was closed, and will be erased.",
    ChangeType.USER_RESTORED: "A closed account is kept after all.",
    ChangeType.USER_ERASED: "A closed account no longer exists.",
    ChangeType.USER_MERGED: "A user was merged into another one.",
    ChangeType.USER_UNMERGED: "A merge of users was undone.",
    ChangeType.USER_UPGRADED: "A guest has become an account.",
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
MAX_SHOWN = 2000  # characters of an event, which may have megabytes


def webhook_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(WEBHOOKS)

    async def form_values(_visit: ConsoleVisit, _variables: Variables) -> Record:
        return {"event_texts": ALL_TEXTS}

    webhooks = ListPage(WEBHOOKS, "/webhooks", "webhooks", "webhooks/list.html", CSV_COLUMNS, default_sort="created")
    add_list(console, routes, webhooks)

    async def show_secret(visit: ConsoleVisit, found: AdminResponse, _: Variables, form: Form) -> Response:
        """A secret is generated if none is given. It is shown once."""
        warnings = found.members.get("warnings", ())
        webhook = found.members["data"]
        return await webhook_page(console, visit, webhook, new_secret=form["secret"], warnings=warnings, is_new=True)

    add_form(
        console,
        routes,
        FormPage(
            WEBHOOKS,
            "",
            "POST",
            "/webhooks",
            _new_webhook,
            new_record(console, "webhooks/new.html", "Add webhook", "/webhooks", form_values),
            result=show_secret,
            page_path="/new",
        ),
    )
    webhook_detail_pages(console, routes)
    return routes


def webhook_detail_pages(console: ConsoleView, routes: Blueprint) -> None:
    async def show_webhook(visit: ConsoleVisit, variables: Variables, form: Form | None, /, **problem: Any) -> Response:
        return await webhook_page(console, visit, await visit.data("GET", WEBHOOK, **variables), form, **problem)

    add_form(
        console,
        routes,
        FormPage(
            WEBHOOKS,
            "/<webhook_id>",
            "PATCH",
            WEBHOOK,
            lambda form, _: _body(form) | ({"secret": form["secret"]} if form.get("secret") else {}),
            show_webhook,
            "webhook-saved",
            lambda _, variables: path_of(variables["webhook_id"]),
            opens=True,
        ),
    )
    add_actions(console, routes, WEBHOOKS, *record_actions(WEBHOOKS, WEBHOOK, "webhook"))
    add_deletion(console, routes, DELETION)

    @routes.post("/<webhook_id>/retry")
    async def retry(webhook_id: str) -> Response:
        """Sends one failed event again, or all of them."""
        visit, form = await console.submitted(WEBHOOKS, "POST", f"{WEBHOOK}/failed/retry", recent="never")
        body = {"ids": [form["id"]]} if form.get("id") else {}
        await visit.call("POST", f"{WEBHOOK}/failed/retry", webhook_id=webhook_id, body=body)
        return done(path_of(webhook_id), "webhook-retried")


async def _consequences(visit: ConsoleVisit, stored: StoredRecord, variables: Variables) -> Consequences:
    url, path = stored.data["url"], path_of(variables["webhook_id"])
    ends = ["No event is sent there any more."]
    # They are not counted: a page may be shorter than its limit.
    if await visit.data("GET", f"{WEBHOOK}/failed", query={"limit": "1"}, **variables):
        ends.append("The events that could not be delivered, and could be sent again.")
    undo = "This cannot be undone: create the webhook again, with a new secret."
    return Consequences(url, ends, undo, path, [(path, url)])


DELETION = DeletionPage(
    WEBHOOKS, "/<webhook_id>/delete", WEBHOOK, "webhook", "webhook-deleted", lambda _: WEBHOOKS.path, _consequences
)


def _new_webhook(form: Form, _variables: Variables) -> Record:
    form["secret"] = form.get("secret") or secret_token()  # the next page shows it
    return _body(form) | {"secret": form["secret"]}


def _body(form: Form) -> Record:
    return {"url": form.get("url", "").strip(), "events": split_list(form.get("events", ""))}


async def webhook_page(
    console: ConsoleView,
    visit: ConsoleVisit,
    webhook: dict[str, Any],
    form: Form | None = None,
    **context: Any,
) -> Response:
    query = {"after": request.args.get("after", "")} if request.method == "GET" else {}
    failed = await visit.call("GET", f"{WEBHOOK}/failed", webhook_id=webhook["id"], query=query)
    stored = {name: value for name, value in webhook.items() if name != "delivery"}
    events = [one["event"] for one in failed.members["data"]]
    ids = {kind: [event.get(f"{kind}_id") for event in events] for kind in ("user", "application")}
    values = {"url": webhook["url"], "events": " ".join(webhook["events"])}
    return await console.show(
        visit,
        "webhooks/webhook.html",
        title=webhook["url"],
        webhook=webhook,
        names=await visit.names(ids),
        base=path_of(webhook["id"]),
        failed=[one | {"content": _shortened(orjson.dumps(one["event"]).decode())} for one in failed.members["data"]],
        next=failed.members.get("next"),
        event_texts=ALL_TEXTS,
        values=values | ({name: form[name] for name in values if name in form} if form else {}),
        version=version_of(stored),
        **context,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def path_of(webhook_id: str) -> str:
    return f"{WEBHOOKS.path}/{webhook_id}"
