"""Creates the objects of this package and connects them."""

from msgspec import Struct

from sso.config import Settings
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.device.authorization import DeviceAuthorization, DeviceClients
from sso.device.grant import DeviceGrant
from sso.device.session_store import DeviceSessionStore, DeviceTokenStore
from sso.device.token_issuer import DeviceTokens
from sso.gsid.wiring import GameLogin
from sso.oauth.wiring import OAuth


class DeviceLogin(Struct, frozen=True):
    sessions: DeviceSessionStore
    authorization: DeviceAuthorization
    tokens: DeviceTokens
    grant: DeviceGrant
    user_code_rate: RateLimiter


def build_device_login(settings: Settings, database: Database, oauth: OAuth, game_login: GameLogin) -> DeviceLogin:
    sessions = DeviceSessionStore(database, settings.device_ttl_s)
    clients = DeviceClients(oauth.client_cache)
    tokens = DeviceTokens(DeviceTokenStore(database, oauth.token_store.lifetimes), oauth.token_issuer)
    return DeviceLogin(
        sessions=sessions,
        authorization=DeviceAuthorization(clients, sessions, game_login.rate_limiter, settings.base_url),
        tokens=tokens,
        grant=DeviceGrant(clients, sessions, tokens, game_login.polls, oauth.dpop_proofs, oauth.resource_servers),
        user_code_rate=RateLimiter(database, "user code", settings.rate_user_code),
    )
