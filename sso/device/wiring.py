"""Creates the objects of this package and connects them."""

from dataclasses import dataclass

from sso.config import Settings
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.device.authorization import DeviceAuthorization
from sso.device.clients import DeviceClients
from sso.device.grant import DeviceGrant
from sso.device.session_store import DeviceSessionStore
from sso.gsid.wiring import GameLogin
from sso.oauth.wiring import OAuth


@dataclass(frozen=True)
class DeviceLogin:
    sessions: DeviceSessionStore
    authorization: DeviceAuthorization
    grant: DeviceGrant
    user_code_rate: RateLimiter


def build_device_login(settings: Settings, database: Database, oauth: OAuth, game_login: GameLogin) -> DeviceLogin:
    sessions = DeviceSessionStore(database, settings.device_ttl_s)
    clients = DeviceClients(oauth.client_cache)
    return DeviceLogin(
        sessions=sessions,
        authorization=DeviceAuthorization(clients, sessions, game_login.rate_limiter, settings.base_url),
        grant=DeviceGrant(clients, sessions, game_login.device_polls),
        user_code_rate=RateLimiter(database, "user code", settings.rate_user_code),
    )
