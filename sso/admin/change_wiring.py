"""Builds the resources of the management API for the stream of changes and its webhooks."""

from dataclasses import dataclass

from sso.admin.changes import ChangeStream, change_routes
from sso.admin.request import AdminRoute
from sso.admin.webhooks import WebhookResource, webhook_routes
from sso.bus.bus import Bus
from sso.change_stream.reader import ChangeReader
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.webhooks.wiring import Webhooks


@dataclass(frozen=True)
class ChangeParts:
    bus: Bus
    reader: ChangeReader
    webhooks: Webhooks


def stream_routes(database: Database, keyring: Keyring, parts: ChangeParts) -> tuple[AdminRoute, ...]:
    client, allow_http = parts.webhooks.client, parts.webhooks.allow_http
    webhooks = WebhookResource(database, keyring, parts.bus, client, allow_http=allow_http)
    return (*change_routes(ChangeStream(parts.reader)), *webhook_routes(webhooks))
