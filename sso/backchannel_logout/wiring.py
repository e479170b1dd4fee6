"""Creates the sender of this package."""

from sso.backchannel_logout.sender import LIMITS, LogoutSender
from sso.config import Settings
from sso.core.outgoing_http import OutgoingClient
from sso.core.receiver_addresses import ReceiverAddresses
from sso.db.database import Database
from sso.keys.keyset import KeySet


def build_logout_sender(settings: Settings, database: Database, keys: KeySet) -> LogoutSender:
    addresses = ReceiverAddresses(settings.backchannel_networks, loopback=settings.is_loopback)
    client = OutgoingClient(settings.backchannel_ca_file, LIMITS, addresses.allows)
    return LogoutSender(database, keys, settings.base_url, client, allow_http=settings.is_loopback)
