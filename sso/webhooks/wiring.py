"""Creates the sender of this package, and the HTTP client that it shares with the checks of new addresses."""

from msgspec import Struct

from sso.change_stream.reader import ChangeReader
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.core.outgoing_http import OutgoingClient, OutgoingLimits
from sso.core.receiver_addresses import ReceiverAddresses
from sso.core.receiver_urls import ReceiverUrls
from sso.db.database import Database
from sso.delivery.due_queue import DueQueue
from sso.webhooks.delivery_store import DeliveryStore
from sso.webhooks.sender import LIMITS, build_webhook_sender


class Webhooks(Struct, frozen=True):
    client: OutgoingClient
    sender: DueQueue
    allow_http: bool


def receiver_addresses(settings: Settings) -> ReceiverAddresses:
    return ReceiverAddresses(settings.webhook_networks, loopback=settings.is_loopback)


def receiver_urls(settings: Settings) -> ReceiverUrls:
    return ReceiverUrls(receiver_addresses(settings), allow_http=settings.is_loopback)


def build_client(settings: Settings, limits: OutgoingLimits = LIMITS) -> OutgoingClient:
    return OutgoingClient(settings.webhook_ca_file, limits, receiver_addresses(settings).allows)


def build_webhooks(settings: Settings, database: Database, keyring: Keyring, reader: ChangeReader) -> Webhooks:
    client = build_client(settings)
    deliveries, allow_http = DeliveryStore(database, keyring), settings.is_loopback
    sender = build_webhook_sender(deliveries, reader, client, database.clock, allow_http=allow_http)
    return Webhooks(client, sender, allow_http)
