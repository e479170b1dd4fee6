"""/api/admin/webhooks: the addresses that changes are sent to, and the events that could not be delivered."""

from typing import Annotated

from pydantic import AfterValidator, Field

from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    ListQuery,
    SearchQuery,
    etag,
    list_response,
)
from sso.admin.rights import AdminRight
from sso.audit import trail
from sso.bus.bus import Bus
from sso.change_stream.sequencer import TOPIC
from sso.core.encryption import Keyring
from sso.core.errors import NotFound
from sso.core.outgoing_http import OutgoingClient
from sso.core.outgoing_url import MAX_URL
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.errors import InvalidInput
from sso.web.request_model import at_most
from sso.webhooks import webhook_changes, webhook_store
from sso.webhooks.event_filter import EVENT_NAMES, event_name
from sso.webhooks.model import Webhook

SHORT_SECRET = 16
MAX_RETRIED = 1000
MAX_FAILURE_ID = 2**63 - 1
NOT_FOUND = "webhook not found"


def _failure_id(text: str) -> str:
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= MAX_FAILURE_ID):
        raise ValueError("must be the id of a failed event")
    return text


Url = Annotated[str, at_most(MAX_URL, at_least=1)]
Secret = Annotated[str, at_most(512, at_least=1)]
Events = Annotated[list[Annotated[str, AfterValidator(event_name)]], Field(max_length=len(EVENT_NAMES))]


class WebhookChanges(AdminModel):
    """The fields of a webhook, each of which may be missing."""

    url: Url | None = None
    secret: Secret | None = None
    events: Events | None = None  # empty: all
    disabled: bool | None = None


class NewWebhook(AdminModel):
    url: Url
    secret: Secret
    events: Events = Field(default_factory=list)  # empty: all
    disabled: bool = False


class RetriedEvents(AdminModel):
    ids: Annotated[list[Annotated[str, AfterValidator(_failure_id)]], Field(max_length=MAX_RETRIED)] | None = None


class WebhookResource:
    def __init__(
        self, database: Database, keyring: Keyring, bus: Bus, client: OutgoingClient, *, allow_http: bool
    ) -> None:
        self._database = database
        self._keyring = keyring
        self._bus = bus
        self._client = client
        self._allow_http = allow_http

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: SearchQuery = request.query
        webhooks = await webhook_store.list_webhooks(self._database, query.after, query.limit + 1, query.search)
        shown = webhooks[: query.limit]
        next_after = shown[-1].webhook_id if len(webhooks) > query.limit else None
        return list_response([webhook.json() | {"delivery": webhook.delivery_json()} for webhook in shown], next_after)

    async def get(self, request: AdminRequest) -> AdminResponse:
        return _response(await self._require(request))

    async def create(self, request: AdminRequest) -> AdminResponse:
        """Adds a webhook. It gets the events that are committed from now on."""
        body: NewWebhook = request.body
        await self._check_url(body.url)

        async def work(tx: Transaction) -> Webhook:
            actor = request.caller.actor
            return await webhook_changes.add(
                tx, actor, self._keyring, body.url, body.secret, body.events, disabled=body.disabled
            )

        return _response(await self._database.transaction(work), 201, body.secret)

    async def change(self, request: AdminRequest) -> AdminResponse:
        """Changes a webhook. One that is enabled again gets the events from then on."""
        body: WebhookChanges = request.body
        if body.url is not None:
            await self._check_url(body.url)

        async def work(tx: Transaction) -> Webhook:
            before = _existing(await webhook_store.lock_webhook(tx, request.path["webhook_id"]))
            request.check_version(before.json())
            webhook = await webhook_store.change_webhook(
                tx,
                self._keyring,
                before.webhook_id,
                before.url if body.url is None else body.url,
                body.secret,
                before.events if body.events is None else body.events,
                disabled=before.disabled if body.disabled is None else body.disabled,
            )
            after = webhook.json() | ({} if body.secret is None else {"secret": body.secret})
            await trail.write(tx, request.caller.actor, "webhook.save", webhook.webhook_id, before.json(), after)
            return webhook

        webhook = await self._database.transaction(work)
        self._bus.publish(TOPIC)
        return _response(webhook, 200, body.secret)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Deletes a webhook, with its failed events."""

        def check(webhook: Webhook) -> None:
            request.check_version(webhook.json())

        webhook_id, actor = request.path["webhook_id"], request.caller.actor
        if not await self._database.transaction(webhook_changes.remove, actor, webhook_id, check):
            raise NotFound(NOT_FOUND)
        return AdminResponse()

    async def failed(self, request: AdminRequest) -> AdminResponse:
        """Lists the events that could not be delivered for a day, the oldest first. They are kept for 30 days."""
        query: ListQuery = request.query
        webhook = await self._require(request)
        after = _cursor(query.after)
        failed = await webhook_store.list_failed(self._database, webhook.webhook_id, after, query.limit + 1)
        shown = failed[: query.limit]
        return list_response(shown, shown[-1]["id"] if len(failed) > query.limit else None)

    async def retry(self, request: AdminRequest) -> AdminResponse:
        """Sends failed events again: those of ``ids``, or all. Those that are accepted leave the list."""
        body: RetriedEvents = request.body

        webhook_id, actor = request.path["webhook_id"], request.caller.actor
        count = await self._database.transaction(webhook_changes.resend, actor, webhook_id, body.ids)
        if count is None:
            raise NotFound(NOT_FOUND)
        self._bus.publish(TOPIC)
        return AdminResponse({"data": {"events": count}})

    async def _require(self, request: AdminRequest) -> Webhook:
        return _existing(await webhook_store.get_webhook(self._database, request.path["webhook_id"]))

    async def _check_url(self, url: str) -> None:
        await webhook_changes.check_url(self._client, url, allow_http=self._allow_http)


def _existing(webhook: Webhook | None) -> Webhook:
    if webhook is None:
        raise NotFound(NOT_FOUND)
    return webhook


def _cursor(after: str) -> int:
    try:
        return int(_failure_id(after)) if after else 0
    except ValueError:
        raise InvalidInput("after: must be `next` of an earlier response") from None


def _response(webhook: Webhook, status: int = 200, new_secret: str | None = None) -> AdminResponse:
    """The version is that of the fields that administrators change; the state of the deliveries is no part of it."""
    members: JsonRecord = {"data": webhook.json() | {"delivery": webhook.delivery_json()}}
    if new_secret is not None and len(new_secret) < SHORT_SECRET:
        members["warnings"] = [f"secret: use at least {SHORT_SECRET} random characters; a short one can be guessed"]
    return AdminResponse(members, status, {"ETag": etag(webhook.json())})


_NEW = {"url": "https://tools.example.com/sso-events", "secret": "32 random characters", "events": ["permissions"]}


def webhook_routes(webhooks: WebhookResource) -> tuple[AdminRoute, ...]:
    right, one = AdminRight.MANAGE_WEBHOOKS, "/webhooks/<webhook_id>"
    return (
        AdminRoute("GET", "/webhooks", right, webhooks.list, SearchQuery),
        AdminRoute("POST", "/webhooks", right, webhooks.create, body=NewWebhook, example=_NEW),
        AdminRoute("GET", one, right, webhooks.get),
        AdminRoute(
            "PATCH",
            one,
            right,
            webhooks.change,
            body=WebhookChanges,
            example={"disabled": True},
            fixed_fields={"id": "webhook_id", "created": "", "delivery": ""},
        ),
        AdminRoute("DELETE", one, right, webhooks.delete),
        *(
            AdminRoute("GET", f"{one}/{name}", right, webhooks.failed, ListQuery, summary="List failed events")
            for name in ("failed", "dead-letters")
        ),
        AdminRoute(
            "POST",
            f"{one}/failed/retry",
            right,
            webhooks.retry,
            body=RetriedEvents,
            summary="Send failed events again",
            example={"ids": ["17"]},
        ),
    )
