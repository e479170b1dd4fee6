"""Creates the objects of this package and connects them."""

from msgspec import Struct

from sso.accounts.bans.operations import BanOperations
from sso.accounts.ports import LoginWrites
from sso.accounts.terms.terms import Terms
from sso.config import Settings
from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring
from sso.core.receiver_addresses import ReceiverAddresses
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.mail.outbox import Outbox
from sso.upstream.attempt_store import AttemptStore
from sso.upstream.connection_test import ConnectionTest
from sso.upstream.http_client import STORE_LIMITS, ProviderClient
from sso.upstream.identity_store import PendingIdentities
from sso.upstream.link_conflict_store import LinkConflicts
from sso.upstream.linked_identities import LinkedIdentities
from sso.upstream.model import ProviderAdapter
from sso.upstream.oauth2 import OAuth2
from sso.upstream.openid_connect import OpenIdConnect
from sso.upstream.provider_store import ProviderList, ProviderStore
from sso.upstream.registration import IdentityRegistration
from sso.upstream.sign_in import UpstreamSignIn
from sso.upstream.steam import Steam
from sso.upstream.tickets.game_center import GameCenter
from sso.upstream.tickets.google_play import GooglePlay
from sso.upstream.tickets.model import StoreVerifier
from sso.upstream.tickets.oidc_ticket import OidcTickets
from sso.upstream.tickets.steam_ticket import SteamTickets
from sso.upstream.tickets.verification import TicketVerification


class Upstream(Struct, frozen=True):
    providers: ProviderStore
    provider_list: ProviderList
    links: LinkedIdentities
    conflicts: LinkConflicts
    pending: PendingIdentities
    sign_in: UpstreamSignIn
    registration: IdentityRegistration
    rate: RateLimiter
    connection_test: ConnectionTest
    tickets: TicketVerification


def build_upstream(
    settings: Settings,
    database: Database,
    keyring: Keyring,
    outbox: Outbox,
    brand: CurrentBrand,
    terms: Terms,
    writes: LoginWrites,
    bans: BanOperations,
) -> Upstream:
    addresses = ReceiverAddresses(settings.upstream_networks, loopback=False)
    client = ProviderClient(settings.upstream_ca_file, addresses, allow_http=not settings.https)
    store_client = ProviderClient(
        settings.upstream_ca_file, addresses, allow_http=not settings.https, limits=STORE_LIMITS
    )
    providers = ProviderStore(database, keyring)
    attempts = AttemptStore(database)
    links = LinkedIdentities(database, keyring, outbox, brand, bans, settings.appeal_url or "")
    conflicts = LinkConflicts(database, links)
    pending = PendingIdentities(database, keyring)
    adapters: dict[str, ProviderAdapter] = {
        "oidc": OpenIdConnect(client, database.clock),
        "oauth2": OAuth2(client),
        "steam": Steam(client, attempts, settings.base_url),
    }
    verifiers: dict[str, StoreVerifier] = {
        "steam_ticket": SteamTickets(store_client),
        "google_play": GooglePlay(store_client),
        "game_center": GameCenter(store_client, database.clock),
        "oidc_ticket": OidcTickets(store_client, database.clock),
    }
    return Upstream(
        providers=providers,
        provider_list=ProviderList(providers),
        links=links,
        conflicts=conflicts,
        pending=pending,
        sign_in=UpstreamSignIn(providers, adapters, attempts, links, pending, conflicts, settings.base_url),
        registration=IdentityRegistration(
            database, links, pending, terms, writes, is_open=settings.registration == "open"
        ),
        rate=RateLimiter(database, "upstream", settings.rate_upstream),
        connection_test=ConnectionTest(client),
        tickets=TicketVerification(providers, verifiers),
    )
