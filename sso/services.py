"""Builds the services that the server and the command line share.

This file has more than 300 lines because all of them are built in one place.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.bans.ending import BanExpiry
from sso.accounts.bans.operations import BanOperations
from sso.accounts.email_address.change import EmailChange
from sso.accounts.email_address.new_login import NewLogin
from sso.accounts.email_address.undo import EmailUndo
from sso.accounts.email_address.verification import EmailVerification
from sso.accounts.history.store import AccountHistory
from sso.accounts.impersonation.operations import Impersonations
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login.password_login import NEW_PASSWORDS_PER_MINUTE, PasswordLogin
from sso.accounts.login.rate_limit import LoginRateLimiter
from sso.accounts.mailed_link_store import MailedLinks
from sso.accounts.passkeys.wiring import Passkeys, build_passkeys
from sso.accounts.password_changes import PasswordChanges
from sso.accounts.password_reset.requests import ResetRequests
from sso.accounts.password_reset.reset import PasswordReset
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.registration.wiring import UserRegistration, build_registration
from sso.accounts.second_factor.changes import SecondFactorChanges
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.second_factor.recovery_codes import RecoveryCodes
from sso.accounts.second_factor.requirement import SecondFactorRequirement, UsedFactorRequirement
from sso.accounts.session_store import SessionStore
from sso.accounts.session_tokens import SessionTokens
from sso.accounts.sign_in_notices import SignInNotices
from sso.accounts.signed_in_game_store import SignedInGames
from sso.accounts.support_operations import SupportOperations
from sso.accounts.terms.terms import Terms
from sso.accounts.test_players.hooks import DelayedPasswordLogin, ExpiringMailedLinks, ExpiringSecondFactors
from sso.accounts.test_players.operations import TestPlayers
from sso.accounts.user_jwt import UserJwts
from sso.accounts.user_store import UserStore
from sso.admin.wiring import ManagementApi, ManagementServices, build_management
from sso.backchannel_logout.sender import build_logout_sender
from sso.branding.live_brand import LiveBrand
from sso.branding.settings_brand import settings_brand
from sso.bus.bus import Bus
from sso.bus.wiring import build_bus
from sso.change_stream.permission_changes import PermissionChangeRecorder
from sso.change_stream.reader import ChangeReader
from sso.change_stream.revisions import Revisions
from sso.change_stream.sequencer import ChangeSequencer
from sso.config import Settings
from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring
from sso.core.passwords import Hasher
from sso.core.signature_verification import SignatureVerificationPool
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.db.time_limits import TimeLimits
from sso.delivery.due_queue import DueQueue
from sso.device.wiring import DeviceLogin, build_device_login
from sso.gsid.banned_session_store import BannedSessions
from sso.gsid.wiring import GameLogin, build_game_login
from sso.keys.keyset import KeySet
from sso.keys.master_key import open_keyring
from sso.keys.rotation import KeyRotation
from sso.keys.store import KeyStore
from sso.mail.outbox import Outbox
from sso.mail.sender import build_mail_sender
from sso.mail.smtp import MAIL_FOLDER, Delivery
from sso.oauth.authorization.device_sites import ClientDeviceSites
from sso.oauth.tokens.banned_grant_store import BannedGrants
from sso.oauth.tokens.service_token_store import ServiceTokenStore
from sso.oauth.wiring import OAuth, build_oauth, build_token_store
from sso.perm.wiring import Permissions, build_permissions
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.erasure import AccountErasure
from sso.personal_data.games.wiring import GameData, build_game_data
from sso.players.wiring import GuestLinking, MergeMails, Players, UserMerges, build_players
from sso.ssf.wiring import SharedSignals, build_shared_signals
from sso.state.apply import RecordOperations, build_operations
from sso.telemetry.spans import Telemetry
from sso.upstream.wiring import Upstream, build_upstream
from sso.web.client_address import TrustedProxies
from sso.web.forwarding_monitor import ForwardingMonitor
from sso.webhooks.wiring import build_webhooks, receiver_urls


class Services(Struct, frozen=True):
    settings: Settings
    brand: CurrentBrand
    live_brand: LiveBrand
    terms: Terms
    database: Database
    keyring: Keyring
    bus: Bus
    key_store: KeyStore
    key_rotation: KeyRotation
    keys: KeySet
    users: UserStore
    sessions: SessionStore
    hasher: Hasher
    second_factors: SecondFactors
    second_factor_changes: SecondFactorChanges
    recovery_codes: RecoveryCodes
    passkeys: Passkeys
    second_factor_requirement: SecondFactorRequirement
    used_factor: UsedFactorRequirement
    password_login: PasswordLogin
    password_changes: PasswordChanges
    reset_requests: ResetRequests
    password_reset: PasswordReset
    email_verification: EmailVerification
    email_change: EmailChange
    email_undo: EmailUndo
    sign_in_notices: SignInNotices
    known_devices: KnownDevices
    registration: UserRegistration
    test_players: TestPlayers
    session_tokens: SessionTokens
    signed_in_games: SignedInGames
    history: AccountHistory
    deletion: AccountDeletion
    erasure: AccountErasure
    game_data: GameData
    ban_expiry: BanExpiry
    impersonations: Impersonations
    user_jwts: UserJwts
    authentication_data: AuthenticationDataIssuer
    oauth: OAuth
    game_login: GameLogin
    device_login: DeviceLogin
    players: Players
    upstream: Upstream
    mail_sender: DueQueue
    logout_sender: DueQueue
    permissions: Permissions
    change_sequencer: ChangeSequencer
    change_reader: ChangeReader
    webhook_sender: DueQueue
    service_tokens: ServiceTokenStore
    signals: SharedSignals
    operations: RecordOperations
    management: ManagementApi
    applications: ApplicationDirectory
    proxies: TrustedProxies
    forwarding: ForwardingMonitor


@asynccontextmanager
async def open_services(settings: Settings, dsn: str, telemetry: Telemetry | None = None) -> AsyncIterator[Services]:
    """Connects to the database and yields the services."""
    ring = open_keyring(settings)
    limits = TimeLimits.scaled(settings.database_timeout_s)
    async with Database.open(dsn, settings.database_pool, settings.slow_statement_ms, telemetry, limits) as database:
        yield build(settings, database, ring)


def build(settings: Settings, database: Database, ring: Keyring, bus: Bus | None = None) -> Services:
    """Builds the services on an open database."""
    bus = bus or build_bus(database, settings)
    database.publish_topic = bus.publish
    change_reader = ChangeReader(database, bus)
    webhooks = build_webhooks(settings, database, ring, change_reader)
    key_store = KeyStore(database)
    keys = KeySet(key_store, ring)
    hasher = Hasher(settings.argon2_time, settings.argon2_kib, settings.login_queue)
    brand = CurrentBrand(settings_brand(settings))
    outbox = Outbox(ring, brand)
    users = UserStore(database)
    recovery_codes = RecoveryCodes(database, ring, outbox, brand)
    has_test_players = settings.test_player_password is not None
    factors_type = ExpiringSecondFactors if has_test_players else SecondFactors
    factors = factors_type(database, ring, outbox, brand, recovery_codes)
    factor_changes = SecondFactorChanges(database, recovery_codes, outbox, brand)
    tokens = SessionTokens(
        database, settings.token_ttl_s, settings.stoken_ttl_s, settings.token_max_s, settings.appeal_url or ""
    )
    token_store = build_token_store(settings, database, keys)
    jwts = UserJwts(
        keys, users, token_store, settings.base_url, settings.jwt_ttl_s, settings.token_max_s, database.clock
    )
    verifications = SignatureVerificationPool()
    service_tokens = ServiceTokenStore(database, settings.access_ttl_s)
    admin_rate = RateLimiter(database, "admin", settings.rate_admin)
    used_factor = UsedFactorRequirement(settings.require_2fa, settings.base_url)
    permissions = build_permissions(
        database,
        ring,
        jwts,
        users.find,
        verifications,
        service_tokens.identity_of,
        settings.base_url,
        settings.data_dir / "keys",
        settings.node_name or "",
        Revisions(database, bus),
        game_admin=settings.gsid_admin == "allow",
        rate=admin_rate,
        used_factor=used_factor,
        requires_second_factor=settings.require_2fa != "off",
        appeal_url=settings.appeal_url or "",
        recorder=PermissionChangeRecorder(),
        receiver_urls=receiver_urls(settings),
    )
    applications, writer = permissions.login_rules, permissions.writer
    login_rate_limiter = LoginRateLimiter(database, settings.rate_login, settings.rate_account)
    new_passwords = RateLimiter(database, "new password", NEW_PASSWORDS_PER_MINUTE)
    login_type = DelayedPasswordLogin if has_test_players else PasswordLogin
    password_login = login_type(users, hasher, factors, login_rate_limiter, new_passwords, brand)
    links = (ExpiringMailedLinks if has_test_players else MailedLinks)(database, settings.base_url)
    authentication_data = AuthenticationDataIssuer(tokens, jwts, applications, settings.vendor)
    proxies = TrustedProxies(settings.trusted_proxies, settings.proxy_header.lower())
    smtp_url = settings.smtp_url.get_secret_value() if settings.smtp_url else None
    delivery = Delivery(smtp_url, settings.data_dir / MAIL_FOLDER, settings.smtp_ca_file)
    known_devices = KnownDevices(database, users, ring)
    sign_in_notices = SignInNotices(database, known_devices, applications, outbox, settings.base_url, brand)
    terms = Terms(brand, settings.terms_version or "", settings.minimum_age)
    sessions = SessionStore(
        database,
        settings.browser_ttl_s,
        terms.must_accept,
        second_factor_of_all=settings.require_2fa == "all",
    )
    games = SignedInGames(database, applications, settings.token_ttl_s, settings.jwt_ttl_s, settings.token_max_s)
    deletion = AccountDeletion(database, writer, outbox, brand, settings.base_url, settings.deletion_days)
    erasure = AccountErasure(database)
    game_data = build_game_data(settings, database, ring)
    password_changes = PasswordChanges(database, outbox, brand)
    new_login = NewLogin(users, links, writer)
    oauth = build_oauth(settings, database, ring, keys, jwts, token_store, verifications, service_tokens, brand)
    bans = BanOperations((BannedSessions(), BannedGrants()))
    merges = UserMerges(database, writer, bans)
    upstream = build_upstream(settings, database, ring, outbox, brand, terms, writer, bans)
    game_login = build_game_login(
        settings,
        database,
        bus,
        authentication_data,
        applications,
        verifications,
        sign_in_notices,
        ClientDeviceSites(database, oauth.clients, oauth.authorizations, sign_in_notices),
        jwts,
        GuestLinking(database, merges, upstream.conflicts, upstream.links),
    )
    registration = build_registration(settings, database, ring, links, outbox, password_login, brand, terms, writer)
    players = build_players(
        settings,
        database,
        tokens,
        authentication_data,
        used_factor,
        game_login,
        games,
        deletion,
        erasure,
        merges,
        MergeMails(outbox, brand),
        upstream,
    )
    key_rotation = KeyRotation(database, bus, ring)
    impersonations = Impersonations(database, permissions.impersonation_rights, outbox, brand, settings.base_url)
    signals = build_shared_signals(settings, database, ring, keys, bus)
    operations = build_operations(ring, password_changes, allow_http=not settings.https)
    management = ManagementServices(
        settings, database, ring, bus, operations, SupportOperations(database, users, sessions, games, factor_changes),
        users, hasher, deletion, erasure, registration, permissions, service_tokens.identity_of, upstream, key_store,
        key_rotation, change_reader, webhooks, admin_rate, players, bans, impersonations,
    )  # fmt: skip
    return Services(
        settings=settings,
        brand=brand,
        live_brand=LiveBrand(database, settings, brand),
        terms=terms,
        database=database,
        keyring=ring,
        bus=bus,
        key_store=key_store,
        key_rotation=key_rotation,
        keys=keys,
        users=users,
        sessions=sessions,
        hasher=hasher,
        second_factors=factors,
        second_factor_changes=factor_changes,
        recovery_codes=recovery_codes,
        second_factor_requirement=SecondFactorRequirement(settings.require_2fa, applications),
        used_factor=used_factor,
        passkeys=build_passkeys(settings.base_url, database, ring, outbox, factor_changes, login_rate_limiter, brand),
        password_login=password_login,
        password_changes=password_changes,
        reset_requests=ResetRequests(database, links, outbox, brand),
        password_reset=PasswordReset(database, users, links, password_changes),
        email_verification=EmailVerification(database, users, links, outbox, brand),
        email_change=EmailChange(database, links, outbox, brand, new_login),
        email_undo=EmailUndo(database, links, outbox, brand, new_login),
        sign_in_notices=sign_in_notices,
        known_devices=known_devices,
        registration=registration,
        test_players=TestPlayers(database, users, writer, operations.users, bans, factor_changes, hasher),
        session_tokens=tokens,
        signed_in_games=games,
        deletion=deletion,
        erasure=erasure,
        game_data=game_data,
        ban_expiry=BanExpiry(database, bans),
        history=AccountHistory(database, applications, settings.history_days),
        impersonations=impersonations,
        user_jwts=jwts,
        authentication_data=authentication_data,
        oauth=oauth,
        game_login=game_login,
        device_login=build_device_login(settings, database, oauth, game_login),
        players=players,
        upstream=upstream,
        permissions=permissions,
        change_sequencer=ChangeSequencer(database, bus),
        change_reader=change_reader,
        webhook_sender=webhooks.sender,
        service_tokens=service_tokens,
        signals=signals,
        operations=operations,
        management=build_management(management),
        applications=applications,
        proxies=proxies,
        forwarding=ForwardingMonitor(proxies),
        logout_sender=build_logout_sender(settings, database, keys),
        mail_sender=build_mail_sender(database, ring, settings.mail_from, delivery, brand),
    )
