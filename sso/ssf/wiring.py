"""Creates the objects of this package."""

from msgspec import Struct

from sso.bus.bus import Bus
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.delivery.due_queue import DueQueue
from sso.keys.keyset import KeySet
from sso.ssf.delivery_store import SignalDeliveries
from sso.ssf.event_tokens import EventTokens
from sso.ssf.operations import StreamOperations
from sso.ssf.poll import SignalPolls
from sso.ssf.push import LIMITS
from sso.ssf.sender import SignalDelivery, build_signal_sender
from sso.ssf.upkeep import StreamUpkeep
from sso.webhooks.wiring import build_client


class SharedSignals(Struct, frozen=True):
    operations: StreamOperations
    tokens: EventTokens
    polls: SignalPolls
    sender: DueQueue
    upkeep: StreamUpkeep


def build_shared_signals(
    settings: Settings, database: Database, keyring: Keyring, keys: KeySet, bus: Bus
) -> SharedSignals:
    client, allow_http = build_client(settings, LIMITS), settings.is_loopback
    deliveries, tokens = SignalDeliveries(database, keyring), EventTokens(keys, settings.base_url)
    delivery = SignalDelivery(deliveries, tokens, client, allow_http=allow_http)
    return SharedSignals(
        StreamOperations(database, keyring, client, allow_http=allow_http),
        tokens,
        SignalPolls(deliveries, bus),
        build_signal_sender(delivery),
        StreamUpkeep(database, bus),
    )
