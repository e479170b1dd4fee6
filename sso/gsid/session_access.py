"""Before a request about a session is heard: is the client blocked, is there such a session, is it the client's?"""

from dataclasses import dataclass, replace

from sso.accounts.ports import ApplicationDirectory
from sso.core.errors import Forbidden
from sso.core.net import Address
from sso.core.verification import VerificationPool
from sso.gsid.client_proof import ClientEvidence, ProofFailure, check
from sso.gsid.errors import UnknownSession, Violation
from sso.gsid.model import GameSessionData, SessionStatus, possible
from sso.gsid.rate_limit import AddressKeys
from sso.gsid.session_store import FoundSession, GameSessionStore
from sso.gsid.violations import Violations


@dataclass(frozen=True)
class SessionRequest:
    """A request about a session: where it really comes from, for whom it says to speak, and what it shows."""

    gsid: str
    real: Address
    said: tuple[str, ...]  # of the client's address, by a server that acts for it
    signature: str | None
    evidence: ClientEvidence

    @classmethod
    def by_address(cls, gsid: str, real: Address) -> "SessionRequest":
        return cls(gsid, real, (), None, ClientEvidence(real))

    @property
    def shows_its_address_alone(self) -> bool:
        shown = self.evidence
        beside = (self.signature, shown.location, shown.signature, shown.public_key)
        return not self.said and all(text is None for text in beside)


@dataclass(frozen=True)
class AuthenticatedSession:
    facts: GameSessionData
    standing: SessionStatus
    strike_key: bytes  # under which its early polls are counted


def only(said: tuple[str, ...]) -> str | None:
    """It may stand in more than one place, but must be the same address everywhere."""
    if len({text.strip() for text in said}) > 1:
        raise Forbidden("Ip is said twice")
    return said[0] if said else None


class SessionAccess:
    def __init__(
        self,
        sessions: GameSessionStore,
        applications: ApplicationDirectory,
        violations: Violations,
        pool: VerificationPool,
        location_url: str,
    ) -> None:
        self._sessions = sessions
        self._applications = applications
        self._violations = violations
        self._pool = pool
        self._location_url = location_url

    async def admit(self, asked: SessionRequest, *, address_suffices: bool = False) -> AuthenticatedSession:
        """Violation, if the request is not about a session of its own."""
        early = AddressKeys.of(asked.real).early
        found = await self._find(asked, early)
        if found.blocked:
            raise await self._violations.blocked(asked.gsid, asked.real)
        facts, standing = await self._known(asked, found)
        try:
            address = await self._applications.client_address(
                asked.real, only(asked.said), asked.signature, facts.registered_applications
            )
        except Forbidden as error:
            raise await self.refuse(asked, ProofFailure("Ip header", facts.address, error.message)) from None
        evidence = asked.evidence if address is asked.real else replace(asked.evidence, address=address)
        wrong = await check(facts, evidence, self._location_url, self._pool, address_suffices=address_suffices)
        if wrong:
            raise await self.refuse(asked, wrong)
        by_key = facts.key_digest if evidence.signature is not None else None
        return AuthenticatedSession(facts, standing, by_key or early)

    async def look(self, asked: SessionRequest) -> tuple[GameSessionData, SessionStatus, str]:
        """For those who need no proof: the session, and the state in which it was closed."""
        found = await self._find(asked, AddressKeys.of(asked.real).early)
        facts, standing = await self._known(asked, found)
        return facts, standing, found.state

    async def refuse(self, asked: SessionRequest, wrong: ProofFailure) -> Violation:
        return await self._violations.refuse(asked.gsid, wrong, asked.real)

    async def _find(self, asked: SessionRequest, early: bytes) -> FoundSession:
        return await self._sessions.find(possible(asked.gsid), early, signs=asked.evidence.signature is not None)

    async def _known(self, asked: SessionRequest, found: FoundSession) -> tuple[GameSessionData, SessionStatus]:
        if found.facts is None or found.standing is None:
            refused = await self.refuse(asked, ProofFailure("no such session"))
            raise UnknownSession(refused.message)
        return found.facts, found.standing
