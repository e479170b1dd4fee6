"""Creates the objects of this package and connects them."""

from msgspec import Struct

from sso.config import Settings
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.delivery.due_queue import DueQueue
from sso.personal_data.games.exports import GameExports
from sso.personal_data.games.queue_store import DataQueue
from sso.personal_data.games.sender import LIMITS, REMOVAL_LIMITS, build_data_sender
from sso.webhooks.wiring import build_client


class GameData(Struct, frozen=True):
    exports: GameExports
    queue: DataQueue
    sender: DueQueue


def build_game_data(settings: Settings, database: Database, keyring: Keyring) -> GameData:
    """Games get requests under the rules of webhooks."""
    client, removal_client = build_client(settings, LIMITS), build_client(settings, REMOVAL_LIMITS)
    queue = DataQueue(database, keyring)
    sender = build_data_sender(
        database, queue, settings.base_url, client, removal_client, allow_http=settings.is_loopback
    )
    return GameData(GameExports(database), queue, sender)
