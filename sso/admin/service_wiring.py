"""Builds the resources of the management API that concern the service itself."""

from dataclasses import dataclass

from sso.admin.clients import ClientResource, client_routes
from sso.admin.request import AdminRoute
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.oauth.client_store import ClientStore


@dataclass(frozen=True)
class ServiceParts:
    """The services by which the management API manages the service itself."""

    settings: Settings
    clients: ClientStore


def service_routes(database: Database, keyring: Keyring, parts: ServiceParts) -> tuple[AdminRoute, ...]:
    allow_http = not parts.settings.https
    return client_routes(ClientResource(database, parts.clients, keyring, allow_http=allow_http))
