"""/api/admin/webhooks: the addresses that changes are sent to, and the events that could not be delivered."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from msgspec.structs import replace
from pydantic import AfterValidator, Field

from sso.admin.answers.service import FailedEventJson, RetriedEventCountJson, WebhookJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.record_resource import RecordKind, RecordResource
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    ListQuery,
    SortedQuery,
    list_response,
    read_number_cursor,
)
from sso.admin.rights import AdminRight
from sso.core.encryption import Keyring
from sso.core.outgoing_url import MAX_URL
from sso.db.database import Database
from sso.db.sorted_pages import Page
from sso.db.transaction import Transaction
from sso.web.request_model import at_most
from sso.webhooks import operations, webhook_store
from sso.webhooks.event_filter import EVENT_NAMES, event_name
from sso.webhooks.model import Webhook
from sso.webhooks.wiring import Webhooks

SHORT_SECRET = 16
MAX_RETRIED = 1000
MAX_FAILURE_ID = 2**63 - 1


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


class WebhookQuery(SortedQuery):
    sort: Literal["url", "created"] | None = None  # without it: the id


class RetriedEvents(AdminModel):
    ids: Annotated[list[Annotated[str, AfterValidator(_failure_id)]], Field(max_length=MAX_RETRIED)] | None = None


class WebhookResource(RecordResource[Webhook]):
    variable = "webhook_id"
    kind = RecordKind(
        "webhook",
        "/webhooks",
        "/webhooks/<webhook_id>",
        AdminRight.MANAGE_WEBHOOKS,
        AdminRight.MANAGE_WEBHOOKS,
        NewWebhook,
        {"url": "https://tools.example.com/sso-events", "secret": "32 random characters", "events": ["permissions"]},
        WebhookChanges,
        {"disabled": True},
        {"id": "webhook_id", "created": "", "delivery": ""},
        list_query=WebhookQuery,
        details={
            "create": "Adds a webhook. It gets the events that are committed from now on.",
            "change": "Changes a webhook. One that is enabled again gets the events from then on.",
            "delete": "Deletes a webhook, with its failed events.",
        },
        record=WebhookJson,
    )

    def __init__(self, database: Database, keyring: Keyring, webhooks: Webhooks) -> None:
        super().__init__(database)
        self._keyring = keyring
        self._webhooks = webhooks

    async def page(self, request: AdminRequest) -> Page[Webhook]:
        query: WebhookQuery = request.query
        return await webhook_store.find_webhook_page(self.database, query.page)

    async def read(self, key: str) -> Webhook | None:
        return await webhook_store.get_webhook(self.database, key)

    async def lock(self, tx: Transaction, key: str) -> Webhook | None:
        return await webhook_store.lock_webhook(tx, key)

    def json(self, record: Webhook) -> JsonRecord:
        return self.version(record) | {"delivery": record.delivery_json()}

    def version(self, record: Webhook) -> JsonRecord:
        """The state of the deliveries is no part of the version."""
        return record.json()

    async def prepare_new(self, request: AdminRequest) -> NewWebhook:
        body: NewWebhook = request.body
        await self._check_url(body.url)
        return body

    async def prepare_changes(self, request: AdminRequest) -> WebhookChanges:
        body: WebhookChanges = request.body
        if body.url is not None:
            await self._check_url(body.url)
        return body

    async def insert(self, tx: Transaction, request: AdminRequest, prepared: NewWebhook) -> Webhook:
        fields = prepared.model_dump()
        return await operations.create_webhook(tx, request.caller.actor, self._keyring, **fields)

    async def save(self, tx: Transaction, request: AdminRequest, record: Webhook, prepared: WebhookChanges) -> None:
        fields = prepared.model_dump()
        await operations.change_webhook(tx, request.caller.actor, self._keyring, record, **fields)

    async def remove(self, tx: Transaction, request: AdminRequest, record: Webhook) -> None:
        await operations.delete_webhook(tx, request.caller.actor, record)

    async def respond_written(
        self,
        request: AdminRequest,
        work: Callable[[Transaction], Awaitable[Webhook]],
        status: int,
        prepared: NewWebhook | WebhookChanges,
    ) -> AdminResponse:
        response = await super().respond_written(request, work, status, prepared)
        if prepared.secret is None or len(prepared.secret) >= SHORT_SECRET:
            return response
        warning = f"secret: use at least {SHORT_SECRET} random characters; a short one can be guessed"
        return replace(response, members={**response.members, "warnings": [warning]})

    async def failed(self, request: AdminRequest) -> AdminResponse:
        """Lists the events that could not be delivered for a day, the oldest first. They are kept for 30 days."""
        query: ListQuery = request.query
        webhook = self.existing(await self.read(self.path_key(request)))
        after = read_number_cursor(query.after, MAX_FAILURE_ID)
        failed, has_more = await webhook_store.list_failed(self.database, webhook.webhook_id, after, query.limit)
        return list_response(failed, failed[-1]["id"] if has_more else None)

    async def retry(self, request: AdminRequest) -> AdminResponse:
        """Sends failed events again: those of ``ids``, or all. Those that are accepted leave the list."""
        body: RetriedEvents = request.body

        async def work(tx: Transaction) -> int:
            webhook = self.existing(await self.lock(tx, self.path_key(request)))
            return await operations.retry_failed(tx, request.caller.actor, webhook, body.ids)

        return AdminResponse({"data": {"events": await self.write(request, work)}})

    async def _check_url(self, url: str) -> None:
        await operations.check_url(self._webhooks.client, url, allow_http=self._webhooks.allow_http)

    def routes(self) -> tuple[AdminRoute, ...]:
        right, one = self.kind.manage, "/webhooks/<webhook_id>"
        failed = (
            AdminRoute(
                "GET",
                f"{one}/{name}",
                right,
                self.failed,
                ListQuery,
                answer=AnswerShape(FailedEventJson),
                operation=operation,
            )
            for name, operation in (("failed", "list_failed_events"), ("dead-letters", "list_dead_letters"))
        )
        retry = AdminRoute(
            "POST",
            f"{one}/failed/retry",
            right,
            self.retry,
            body=RetriedEvents,
            answer=AnswerShape(RetriedEventCountJson),
            operation="retry_failed_events",
            summary="Send failed events again",
            example={"ids": ["17"]},
        )
        return (*super().routes(), *failed, retry)
