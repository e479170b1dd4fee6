"""Builds the services of game login from settings and shared services."""

from msgspec import Struct

from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.device_sites import DeviceSites
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.sign_in_notices import SignInNotices
from sso.accounts.signed_in_game_store import EXPIRED_JWT_S
from sso.accounts.user_jwt import UserJwts
from sso.accounts.user_jwt_claims import sign_in_of
from sso.bus.bus import Bus
from sso.config import Settings
from sso.core.errors import Unauthorized
from sso.core.field_errors import FieldError
from sso.core.jwt import InvalidToken
from sso.core.net import Address, Network
from sso.core.signature_verification import SignatureVerificationPool
from sso.db.clock import DatabaseClock
from sso.db.database import Database
from sso.demo.mark import is_demo
from sso.gsid.backpressure import Backpressure
from sso.gsid.claim_renewal import ClaimLeases
from sso.gsid.claim_store import ClaimStore
from sso.gsid.confirm import Confirmation
from sso.gsid.guest_merges import GuestMerges
from sso.gsid.held_polls import HeldPolls
from sso.gsid.login_flow import GameLoginFlows
from sso.gsid.login_issuer import GameLoginIssuer
from sso.gsid.poll import PollHandler
from sso.gsid.poll_store import PollStore
from sso.gsid.rate_limit import GameRateLimiter, GameRateLimits
from sso.gsid.register import Registration
from sso.gsid.session_auth import SessionAuthenticator
from sso.gsid.session_store import GameSessionStore
from sso.gsid.socket_registry import SocketRegistry
from sso.gsid.socket_store import SocketStore
from sso.gsid.violations import Violations

BASE = "/proxy/api/gameSession"


class GameLogin(Struct, frozen=True):
    applications: ApplicationDirectory
    bus: Bus
    clock: DatabaseClock
    sessions: GameSessionStore
    socket_store: SocketStore
    rate_limiter: GameRateLimiter
    violations: Violations
    authenticator: SessionAuthenticator
    registration: Registration
    polls: PollHandler
    held_polls: HeldPolls
    claim_leases: ClaimLeases
    socket_registry: SocketRegistry
    backpressure: Backpressure
    confirmation: Confirmation
    login_flows: GameLoginFlows
    location_url: str  # the secret is appended to it
    info_allow: tuple[Network, ...]
    appeal_url: str
    jwts: UserJwts

    async def link_guest(self, authorization: str, factor: str | None, address: Address) -> tuple[str, str | None]:
        """Returns the guest whose user JWT the request has, and the sign-in of the JWT.

        Raises Unauthorized, or FieldError for an account.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not factor:
            raise Unauthorized("invalid token: link requires Authorization: Bearer <user JWT>, and Factor")
        try:
            verified = await self.jwts.verify(token.strip(), address, factor=factor)
        except InvalidToken:
            raise Unauthorized from None
        if not verified.user.is_guest:
            raise FieldError(("link",), "the user of the JWT is not a guest")
        return verified.user.user_id, sign_in_of(verified.claims) or None

    def drain(self) -> None:
        """Answers all held polls and closes all sockets, because this worker stops."""
        self.backpressure.drain(len(self.held_polls))
        self.held_polls.drain()
        self.socket_registry.drain()


def build_game_login(
    settings: Settings,
    database: Database,
    bus: Bus,
    authentication_data: AuthenticationDataIssuer,
    applications: ApplicationDirectory,
    verifications: SignatureVerificationPool,
    notices: SignInNotices,
    device_sites: DeviceSites,
    jwts: UserJwts,
    merges: GuestMerges,
) -> GameLogin:
    sessions = GameSessionStore(database, bus, settings.gsid_ttl_s, settings.gsid_max_s)
    poll_store = PollStore(database, bus, settings.gsid_ttl_s, settings.gsid_max_s, settings.gsid_hold_s)
    rate_limiter = GameRateLimiter(
        database, GameRateLimits(settings.rate_getgsid, settings.poll_strikes, settings.poll_block_s)
    )
    violations = Violations(database, rate_limiter, settings.poll_block_s, explains=is_demo(settings))
    location_url = f"{settings.base_url}{BASE}/getGsidResult?Location="
    authenticator = SessionAuthenticator(sessions, applications, violations, verifications, location_url)
    held_polls = HeldPolls(poll_store, bus)
    claim_leases = ClaimLeases(ClaimStore(database, bus, settings.token_max_s + EXPIRED_JWT_S))
    backpressure = Backpressure(settings.poll_delay_s)
    socket_store = SocketStore(database, bus)
    confirmation = Confirmation(
        sessions, applications, device_sites, notices, merges, game_admin=settings.gsid_admin == "allow"
    )
    return GameLogin(
        applications=applications,
        bus=bus,
        clock=database.clock,
        sessions=sessions,
        socket_store=socket_store,
        rate_limiter=rate_limiter,
        violations=violations,
        authenticator=authenticator,
        registration=Registration(sessions),
        polls=PollHandler(
            poll_store,
            claim_leases,
            GameLoginIssuer(authentication_data),
            bus,
            held_polls,
            rate_limiter,
            authenticator,
            backpressure,
            settings.gsid_hold_s,
        ),
        held_polls=held_polls,
        claim_leases=claim_leases,
        socket_registry=SocketRegistry(socket_store, settings.gsid_heartbeat_s),
        backpressure=backpressure,
        confirmation=confirmation,
        login_flows=GameLoginFlows(confirmation),
        location_url=location_url,
        info_allow=settings.info_allow,
        appeal_url=settings.appeal_url or "",
        jwts=jwts,
    )
