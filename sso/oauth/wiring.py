"""Creates the objects of this package and connects them."""

from msgspec import Struct

from sso.accounts.second_factor.requirement import UsedFactorRequirement
from sso.accounts.user_jwt import UserJwts
from sso.config import Settings
from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring
from sso.core.signature_verification import SignatureVerificationPool
from sso.core.thread_pool import available_cpus
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.keys.keyset import KeySet
from sso.keys.signing_pool import SigningPool, signing_threads
from sso.oauth.authorization.authorize import Authorize
from sso.oauth.authorization.connected_site_store import ConnectedSites
from sso.oauth.authorization.login_flow import SiteLoginFlows
from sso.oauth.authorization.pushed_requests import PushedAuthorizationRequests
from sso.oauth.authorization.response import AuthorizationResponses
from sso.oauth.authorization.store import AuthorizationStore
from sso.oauth.clients.assertions import ClientAssertions
from sso.oauth.clients.browser_origins import BrowserOrigins
from sso.oauth.clients.cache import ClientCache
from sso.oauth.clients.client_keys import MAX_PUBLISHED_JWKS, ClientKeys
from sso.oauth.clients.documents import build_client_documents
from sso.oauth.clients.operations import ClientOperations
from sso.oauth.clients.store import ClientStore
from sso.oauth.grant_types.authorization_code import AuthorizationCodeGrant
from sso.oauth.grant_types.client_credentials import ClientCredentialsGrant
from sso.oauth.grant_types.refresh_token import RefreshTokenGrant
from sso.oauth.grant_types.token_endpoint import TokenEndpoint
from sso.oauth.grant_types.token_exchange import TokenExchangeGrant
from sso.oauth.grant_types.user_jwt_exchange import UserJwtExchange
from sso.oauth.logout import Logout
from sso.oauth.recording.recorder import RequestRecorder
from sso.oauth.registration.metadata_documents import MAX_BYTES, MetadataDocuments
from sso.oauth.registration.registration import ClientRegistration
from sso.oauth.tokens.dpop import DpopProofs
from sso.oauth.tokens.dpop_nonces import DpopNonces
from sso.oauth.tokens.exchange_store import ExchangeStore
from sso.oauth.tokens.introspection import Introspection
from sso.oauth.tokens.issuer import TokenIssuer
from sso.oauth.tokens.jwt_access_tokens import AccessTokenDigests
from sso.oauth.tokens.resources import ResourceServers
from sso.oauth.tokens.revocation import Revocation
from sso.oauth.tokens.service_token_store import ServiceTokenStore
from sso.oauth.tokens.store import TokenLifetimes, TokenStore


class OAuth(Struct, frozen=True):
    clients: ClientStore
    client_cache: ClientCache
    authorizations: AuthorizationStore
    token_issuer: TokenIssuer
    token_store: TokenStore
    authorize: Authorize
    login_flows: SiteLoginFlows
    connected_sites: ConnectedSites
    token_endpoint: TokenEndpoint
    revocation: Revocation
    token_exchange: TokenExchangeGrant
    user_jwt_exchange: UserJwtExchange
    logout: Logout
    authorize_rate: RateLimiter
    browser_origins: BrowserOrigins
    assertions: ClientAssertions
    introspection: Introspection
    pushed_requests: PushedAuthorizationRequests
    dpop_proofs: DpopProofs
    resource_servers: ResourceServers
    registration: ClientRegistration
    recorder: RequestRecorder


def build_token_store(settings: Settings, database: Database, keys: KeySet) -> TokenStore:
    lifetimes = TokenLifetimes(
        settings.access_ttl_s,
        settings.refresh_ttl_s,
        settings.grant_max_s,
        settings.refresh_leeway_s,
        settings.browser_ttl_s,
    )
    return TokenStore(database, lifetimes, AccessTokenDigests(keys, settings.base_url, database.clock))


def build_oauth(
    settings: Settings,
    database: Database,
    keyring: Keyring,
    keys: KeySet,
    jwts: UserJwts,
    token_store: TokenStore,
    verifications: SignatureVerificationPool,
    service_tokens: ServiceTokenStore,
    brand: CurrentBrand,
) -> OAuth:
    allow_http = not settings.https
    used_factor = UsedFactorRequirement(settings.require_2fa, settings.base_url)
    recorder = RequestRecorder(database, keyring)
    clients = ClientStore(database, keyring)
    client_cache = ClientCache(clients, allow_http=allow_http)
    signing_pool = SigningPool(signing_threads(settings.workers, available_cpus()))
    token_issuer = TokenIssuer(keys, signing_pool, settings.base_url, settings.id_ttl_s, database.clock)
    authorizations = AuthorizationStore(database, settings.oauth_session_s, allow_http=allow_http)
    resource_servers = ResourceServers(database, allow_http=allow_http)
    registration = ClientRegistration(
        database,
        ClientOperations(keyring, allow_http),
        settings.client_registration,
        RateLimiter(database, "client registration", settings.rate_client_registration),
        brand,
        keys,
        settings.base_url,
    )
    documents = MetadataDocuments(clients, registration, build_client_documents(settings, MAX_BYTES))
    authorize_rate = RateLimiter(database, "authorize", settings.rate_authorize)
    authorize = Authorize(
        documents,
        authorizations,
        token_issuer,
        resource_servers,
        AuthorizationResponses(settings.base_url, recorder.note_answer),
        database.clock,
        authorize_rate,
        allow_http=allow_http,
    )
    dpop_proofs = DpopProofs(database, settings.base_url, DpopNonces(keyring, database.clock))
    client_keys = ClientKeys(build_client_documents(settings, MAX_PUBLISHED_JWKS, entered_by_administrators=True))
    return OAuth(
        clients=clients,
        client_cache=client_cache,
        registration=registration,
        recorder=recorder,
        authorizations=authorizations,
        token_issuer=token_issuer,
        token_store=token_store,
        authorize=authorize,
        login_flows=SiteLoginFlows(authorize),
        connected_sites=ConnectedSites(database),
        token_endpoint=TokenEndpoint(
            AuthorizationCodeGrant(client_cache, token_store, token_issuer, dpop_proofs),
            RefreshTokenGrant(
                client_cache,
                token_store,
                token_issuer,
                dpop_proofs,
                keyring,
                second_factor_of_all=settings.require_2fa == "all",
            ),
            ClientCredentialsGrant(client_cache, service_tokens, dpop_proofs),
            resource_servers,
        ),
        dpop_proofs=dpop_proofs,
        resource_servers=resource_servers,
        revocation=Revocation(clients, token_store, token_issuer),
        token_exchange=TokenExchangeGrant(
            client_cache,
            ExchangeStore(database, settings.access_ttl_s),
            token_store.digests,
            token_issuer,
            dpop_proofs,
            second_factor_of_all=settings.require_2fa == "all",
            allow_http=allow_http,
        ),
        user_jwt_exchange=UserJwtExchange(
            token_store, token_issuer, jwts, settings.id_ttl_s, database.clock, used_factor
        ),
        logout=Logout(clients, token_issuer, allow_http=allow_http),
        authorize_rate=authorize_rate,
        browser_origins=BrowserOrigins(database, allow_http=allow_http),
        introspection=Introspection(clients, token_store, settings.base_url, allow_http=allow_http),
        pushed_requests=PushedAuthorizationRequests(
            clients, documents, authorize, dpop_proofs, database, settings.rate_authorize
        ),
        assertions=ClientAssertions(clients, client_keys, database, verifications, settings.base_url),
    )
