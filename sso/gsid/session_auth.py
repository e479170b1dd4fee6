"""Authentication of a request about a session: the client is not blocked, the session exists, the proof is valid."""

from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.ports import ApplicationDirectory
from sso.core.errors import Forbidden
from sso.core.signature_verification import SignatureVerificationPool
from sso.gsid.client_proof import ProofFailure, verify_proof
from sso.gsid.errors import UnknownSession, Violation
from sso.gsid.model import GameSessionData, SessionSnapshot, gsid_or_empty
from sso.gsid.rate_limit import AddressKeys
from sso.gsid.session_request import SessionRequest, single_address
from sso.gsid.session_store import GameSessionStore, SessionLookup
from sso.gsid.violations import Violations
from sso.telemetry.counters import THROTTLED_REQUESTS


class AuthenticatedSession(Struct, frozen=True):
    session: GameSessionData
    snapshot: SessionSnapshot
    early_poll_key: bytes  # the counter of this client's early polls


class SessionAuthenticator:
    def __init__(
        self,
        sessions: GameSessionStore,
        applications: ApplicationDirectory,
        violations: Violations,
        pool: SignatureVerificationPool,
        location_url: str,
    ) -> None:
        self._sessions = sessions
        self._applications = applications
        self._violations = violations
        self._pool = pool
        self._location_url = location_url

    async def authenticate(self, request: SessionRequest, *, address_suffices: bool = False) -> AuthenticatedSession:
        """Returns the session if the request proves that it comes from the session's client, or raises Violation."""
        early_poll_key = AddressKeys.of(request.origin).early_polls
        lookup = await self._look_up(request, early_poll_key)
        if lookup.blocked:
            THROTTLED_REQUESTS.add("early polls")
            raise await self._violations.blocked(request.gsid, request.origin)
        session, snapshot = await self._require(request, lookup)
        try:
            address = await self._applications.client_address(
                request.origin,
                single_address(request.claimed_addresses),
                request.address_signature,
                session.registered_applications,
            )
        except Forbidden as error:
            raise await self.refuse(request, ProofFailure("Ip header", session.address, error.message)) from None
        evidence = request.evidence if address is request.origin else replace(request.evidence, address=address)
        failure = await verify_proof(
            session, evidence, self._location_url, self._pool, address_suffices=address_suffices
        )
        if failure:
            raise await self.refuse(request, failure)
        key_digest = session.key_digest if evidence.signature is not None else None
        return AuthenticatedSession(session, snapshot, key_digest or early_poll_key)

    async def find(self, request: SessionRequest) -> tuple[GameSessionData, SessionSnapshot, str]:
        """Returns the session, its snapshot and its closing state without any proof, for requests that need none."""
        lookup = await self._look_up(request, AddressKeys.of(request.origin).early_polls)
        session, snapshot = await self._require(request, lookup)
        return session, snapshot, lookup.state

    async def refuse(self, request: SessionRequest, failure: ProofFailure) -> Violation:
        return await self._violations.refuse(request.gsid, failure, request.origin)

    async def _look_up(self, request: SessionRequest, early_poll_key: bytes) -> SessionLookup:
        return await self._sessions.find(
            gsid_or_empty(request.gsid), early_poll_key, signs=request.evidence.signature is not None
        )

    async def _require(self, request: SessionRequest, lookup: SessionLookup) -> tuple[GameSessionData, SessionSnapshot]:
        """Raises UnknownSession if the session does not exist."""
        if lookup.session is None or lookup.snapshot is None:
            violation = await self.refuse(request, ProofFailure("no such session"))
            raise UnknownSession(violation.message, violation.explanation)
        return lookup.session, lookup.snapshot
