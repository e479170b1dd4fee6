"""What this room is made of, put together once."""

from dataclasses import dataclass

from sso.accounts.user_jwt import UserJwts
from sso.config import Settings
from sso.core.cores import cores
from sso.core.sealed import Keyring
from sso.db.bridge import Database
from sso.db.rate_limit import RateLimiter
from sso.keys.aside import Aside
from sso.keys.keyset import KeySet
from sso.oauth.access import SiteAccess
from sso.oauth.authorize import Authorize
from sso.oauth.clients import Clients
from sso.oauth.exchange import Exchange
from sso.oauth.grants import Grants, Lives
from sso.oauth.issue import Tokens
from sso.oauth.journey import SiteJourneys
from sso.oauth.logout import Logout
from sso.oauth.requests import Requests
from sso.oauth.revoke import Revocation
from sso.oauth.token import TokenEndpoint


@dataclass(frozen=True)
class OAuth:
    clients: Clients
    grants: Grants
    authorize: Authorize
    journeys: SiteJourneys
    sites: SiteAccess
    token: TokenEndpoint
    revocation: Revocation
    exchange: Exchange
    logout: Logout
    authorize_rate: RateLimiter


def build(settings: Settings, database: Database, keyring: Keyring, keys: KeySet, jwts: UserJwts) -> OAuth:
    any_http = not settings.https
    clients = Clients(database, keyring)
    lives = Lives(settings.access_ttl_s, settings.refresh_ttl_s, settings.grant_max_s, settings.refresh_leeway_s)
    grants = Grants(database, lives)
    aside = Aside(spare_core=settings.workers < cores())
    tokens = Tokens(keys, aside, settings.base_url, settings.id_ttl_s)
    requests = Requests(database, settings.oauth_session_s, any_http=any_http)
    authorize = Authorize(clients, requests, tokens, any_http=any_http)
    return OAuth(
        clients=clients,
        grants=grants,
        authorize=authorize,
        journeys=SiteJourneys(authorize),
        sites=SiteAccess(database),
        token=TokenEndpoint(clients, grants, tokens, any_http=any_http),
        revocation=Revocation(clients, grants, tokens),
        exchange=Exchange(grants, tokens, jwts, settings.id_ttl_s),
        logout=Logout(clients, tokens, any_http=any_http),
        authorize_rate=RateLimiter(database, "authorize", settings.rate_authorize),
    )
