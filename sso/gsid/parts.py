"""What this room is made of, put together once."""

from dataclasses import dataclass

from sso.accounts.applications import ApplicationsAtLogin
from sso.accounts.auth_data import AuthData
from sso.config import Settings
from sso.core.net import Network
from sso.core.verification import VerificationPool
from sso.db.bridge import Database
from sso.db.wakeups import Wakeups
from sso.gsid.admission import Admission
from sso.gsid.confirm import Confirm
from sso.gsid.ease import Ease
from sso.gsid.heartbeats import Heartbeats
from sso.gsid.holds import Holds
from sso.gsid.journey import GameJourneys
from sso.gsid.limits import Counts, Limits
from sso.gsid.poll import Polls
from sso.gsid.poll_store import PollStore
from sso.gsid.register import Register
from sso.gsid.socket_store import SocketStore
from sso.gsid.store import GameSessions
from sso.gsid.violations import Violations

BASE = "/proxy/api/gameSession"


@dataclass(frozen=True)
class GameLogin:
    applications: ApplicationsAtLogin
    wakeups: Wakeups
    sessions: GameSessions
    socket_store: SocketStore
    counts: Counts
    violations: Violations
    admission: Admission
    register: Register
    polls: Polls
    holds: Holds
    heartbeats: Heartbeats
    ease: Ease
    confirm: Confirm
    journeys: GameJourneys
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
    wakeups: Wakeups,
    auth_data: AuthData,
    applications: ApplicationsAtLogin,
    verifications: VerificationPool,
) -> GameLogin:
    sessions = GameSessions(database, settings.gsid_ttl_s, settings.gsid_max_s)
    polls = PollStore(database, settings.gsid_ttl_s, settings.gsid_max_s, settings.gsid_hold_s)
    counts = Counts(database, Limits(settings.rate_getgsid, settings.poll_strikes, settings.poll_block_s))
    violations = Violations(database, counts, settings.poll_block_s)
    location_url = f"{settings.base_url}{BASE}/getGsidResult?Location="
    admission = Admission(sessions, applications, violations, verifications, location_url)
    holds = Holds(polls, wakeups)
    ease = Ease(settings.poll_delay_s)
    sockets = SocketStore(database)
    confirm = Confirm(sessions, applications, game_admin=settings.gsid_admin == "allow")
    return GameLogin(
        applications=applications,
        wakeups=wakeups,
        sessions=sessions,
        socket_store=sockets,
        counts=counts,
        violations=violations,
        admission=admission,
        register=Register(sessions),
        polls=Polls(polls, auth_data, wakeups, holds, counts, admission, ease, settings.gsid_hold_s),
        holds=holds,
        heartbeats=Heartbeats(sockets, settings.gsid_heartbeat_s),
        ease=ease,
        confirm=confirm,
        journeys=GameJourneys(confirm),
        location_url=location_url,
        info_allow=settings.info_allow,
    )
