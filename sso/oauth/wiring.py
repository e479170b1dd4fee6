"""What this room is made of, put together once."""

from dataclasses import dataclass

from sso.accounts.user_jwt import UserJwts
from sso.config import Settings
from sso.core.cores import cores
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.keys.keyset import KeySet
from sso.keys.signing_pool import SigningPool
from sso.oauth.authorization_store import AuthorizationStore
from sso.oauth.authorize import Authorize
from sso.oauth.client_store import ClientStore
from sso.oauth.connected_sites import ConnectedSites
from sso.oauth.login_flow import SiteLoginFlows
from sso.oauth.logout import Logout
from sso.oauth.revoke import Revocation
from sso.oauth.token_endpoint import TokenEndpoint
from sso.oauth.token_exchange import TokenExchange
from sso.oauth.token_store import TokenLifetimes, TokenStore
from sso.oauth.tokens import TokenIssuer


@dataclass(frozen=True)
class OAuth:
    clients: ClientStore
    grants: TokenStore
    authorize: Authorize
    login_flows: SiteLoginFlows
    sites: ConnectedSites
    token: TokenEndpoint
    revocation: Revocation
    exchange: TokenExchange
    logout: Logout
    authorize_rate: RateLimiter


def build(settings: Settings, database: Database, keyring: Keyring, keys: KeySet, jwts: UserJwts) -> OAuth:
    any_http = not settings.https
    clients = ClientStore(database, keyring)
    lives = TokenLifetimes(
        settings.access_ttl_s, settings.refresh_ttl_s, settings.grant_max_s, settings.refresh_leeway_s
    )
    grants = TokenStore(database, lives)
    aside = SigningPool(spare_core=settings.workers < cores())
    tokens = TokenIssuer(keys, aside, settings.base_url, settings.id_ttl_s)
    requests = AuthorizationStore(database, settings.oauth_session_s, any_http=any_http)
    authorize = Authorize(clients, requests, tokens, any_http=any_http)
    return OAuth(
        clients=clients,
        grants=grants,
        authorize=authorize,
        login_flows=SiteLoginFlows(authorize),
        sites=ConnectedSites(database),
        token=TokenEndpoint(clients, grants, tokens, any_http=any_http),
        revocation=Revocation(clients, grants, tokens),
        exchange=TokenExchange(grants, tokens, jwts, settings.id_ttl_s),
        logout=Logout(clients, tokens, any_http=any_http),
        authorize_rate=RateLimiter(database, "authorize", settings.rate_authorize),
    )
