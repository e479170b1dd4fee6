"""What this room is made of, put together once."""

from dataclasses import dataclass

from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.ports import ApplicationDirectory
from sso.config import Settings
from sso.core.net import Network
from sso.core.verification import VerificationPool
from sso.db.database import Database
from sso.db.notifications import Notifications
from sso.gsid.backpressure import Backpressure
from sso.gsid.confirm import Confirmation
from sso.gsid.held_polls import HeldPolls
from sso.gsid.login_flow import GameLoginFlows
from sso.gsid.poll import Polls
from sso.gsid.poll_store import PollStore
from sso.gsid.rate_limit import GameRateLimiter, GameRateLimits
from sso.gsid.register import Registration
from sso.gsid.session_access import SessionAccess
from sso.gsid.session_store import GameSessionStore
from sso.gsid.socket_registry import SocketRegistry
from sso.gsid.socket_store import SocketStore
from sso.gsid.violations import Violations

BASE = "/proxy/api/gameSession"


@dataclass(frozen=True)
class GameLogin:
    applications: ApplicationDirectory
    wakeups: Notifications
    sessions: GameSessionStore
    socket_store: SocketStore
    counts: GameRateLimiter
    violations: Violations
    admission: SessionAccess
    register: Registration
    polls: Polls
    holds: HeldPolls
    heartbeats: SocketRegistry
    ease: Backpressure
    confirm: Confirmation
    login_flows: GameLoginFlows
    location_url: str  # and the secret
    info_allow: tuple[Network, ...]

    def drain(self) -> None:
        """The server leaves: whoever waits is told to come back, to another."""
        self.ease.drain(len(self.holds))
        self.holds.drain()
        self.heartbeats.drain()


def build(
    settings: Settings,
    database: Database,
    wakeups: Notifications,
    authentication_data: AuthenticationDataIssuer,
    applications: ApplicationDirectory,
    verifications: VerificationPool,
) -> GameLogin:
    sessions = GameSessionStore(database, settings.gsid_ttl_s, settings.gsid_max_s)
    polls = PollStore(database, settings.gsid_ttl_s, settings.gsid_max_s, settings.gsid_hold_s)
    counts = GameRateLimiter(
        database, GameRateLimits(settings.rate_getgsid, settings.poll_strikes, settings.poll_block_s)
    )
    violations = Violations(database, counts, settings.poll_block_s)
    location_url = f"{settings.base_url}{BASE}/getGsidResult?Location="
    admission = SessionAccess(sessions, applications, violations, verifications, location_url)
    holds = HeldPolls(polls, wakeups)
    ease = Backpressure(settings.poll_delay_s)
    sockets = SocketStore(database)
    confirm = Confirmation(sessions, applications, game_admin=settings.gsid_admin == "allow")
    return GameLogin(
        applications=applications,
        wakeups=wakeups,
        sessions=sessions,
        socket_store=sockets,
        counts=counts,
        violations=violations,
        admission=admission,
        register=Registration(sessions),
        polls=Polls(polls, authentication_data, wakeups, holds, counts, admission, ease, settings.gsid_hold_s),
        holds=holds,
        heartbeats=SocketRegistry(sockets, settings.gsid_heartbeat_s),
        ease=ease,
        confirm=confirm,
        login_flows=GameLoginFlows(confirm),
        location_url=location_url,
        info_allow=settings.info_allow,
    )
