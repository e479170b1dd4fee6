"""Builds the resources of the management API that concern the service itself."""

from dataclasses import dataclass

from sso.accounts.signed_in_games import EXPIRED_JWT_S
from sso.admin.clients import ClientResource, client_routes
from sso.admin.game_sessions import GameSessionResource, game_session_routes
from sso.admin.identity_provider_test import TESTS_PER_MINUTE, ProviderTestResource, provider_test_routes
from sso.admin.identity_providers import ProviderResource, provider_routes
from sso.admin.request import AdminRoute
from sso.admin.signing_keys import SigningKeyResource, signing_key_routes
from sso.admin.state import StateResource, state_routes
from sso.admin.violations import ViolationResource, violation_routes
from sso.bus.bus import Bus
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.core.passwords import Hasher
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.keys.rotation import KeyRotation, longest_token_s
from sso.keys.store import KeyStore
from sso.oauth.clients.store import ClientStore
from sso.perm.changes.writer import PermissionWriter
from sso.upstream.connection_test import ConnectionTest
from sso.upstream.provider_store import ProviderStore


@dataclass(frozen=True)
class ServiceParts:
    """The services by which the management API manages the service itself."""

    settings: Settings
    bus: Bus
    clients: ClientStore
    providers: ProviderStore
    connection_test: ConnectionTest
    key_store: KeyStore
    key_rotation: KeyRotation


def service_routes(
    database: Database, keyring: Keyring, parts: ServiceParts, hasher: Hasher, writer: PermissionWriter
) -> tuple[AdminRoute, ...]:
    settings = parts.settings
    allow_http = not settings.https
    clients = ClientResource(database, parts.clients, keyring, allow_http=allow_http)
    providers = ProviderResource(
        database, parts.providers, keyring, parts.bus, settings.base_url, allow_http=allow_http
    )
    keys = SigningKeyResource(parts.key_store, parts.key_rotation, longest_token_s(settings))
    test_rate = RateLimiter(database, "connection test", TESTS_PER_MINUTE)
    provider_test = ProviderTestResource(parts.providers, parts.connection_test, test_rate, settings.base_url)
    sessions = GameSessionResource(database, parts.bus, settings.token_max_s + EXPIRED_JWT_S)
    return (
        *client_routes(clients),
        *provider_routes(providers),
        *provider_test_routes(provider_test),
        *signing_key_routes(keys),
        *game_session_routes(sessions),
        *violation_routes(ViolationResource(database)),
        *state_routes(StateResource(database, hasher, keyring, writer, parts.bus)),
    )
