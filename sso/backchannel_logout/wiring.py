"""Creates the sender of this package."""

from sso.backchannel_logout.sender import LIMITS, LogoutDelivery
from sso.config import Settings
from sso.core.outgoing_http import OutgoingClient
from sso.core.receiver_addresses import ReceiverAddresses
from sso.db.database import Database
from sso.delivery.due_queue import DueQueue
from sso.keys.keyset import KeySet
from sso.mail.outbox import TOPIC  # most changes that end sessions send a mail as well, so one message wakes both


def build_logout_sender(settings: Settings, database: Database, keys: KeySet) -> DueQueue:
    addresses = ReceiverAddresses(settings.backchannel_networks, loopback=settings.is_loopback)
    client = OutgoingClient(settings.backchannel_ca_file, LIMITS, addresses.allows)
    delivery = LogoutDelivery(database, keys, settings.base_url, client, allow_http=settings.is_loopback)
    return DueQueue(TOPIC, delivery, max_deliveries=LIMITS.max_requests)
