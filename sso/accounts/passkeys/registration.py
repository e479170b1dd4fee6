"""Registration of a passkey: the options of the page, and the check of the answer."""

from collections.abc import Sequence

from sso.accounts.login.rate_limit import LoginRateLimiter
from sso.accounts.passkeys.authentication import session_binding
from sso.accounts.passkeys.challenges import ChallengePurpose, PasskeyChallenges
from sso.accounts.passkeys.changes import PasskeyChanges, user_handle
from sso.accounts.passkeys.credential import InvalidPasskey, parse_answer
from sso.accounts.passkeys.options import registration_options, script_data
from sso.accounts.passkeys.relying_party import RelyingParty
from sso.accounts.passkeys.store import Passkey, PasskeyStore
from sso.accounts.passkeys.verification import PasskeyVerifier
from sso.accounts.second_factor.changes import FactorChange
from sso.accounts.session_store import Session
from sso.core.net import Address


class PasskeyRegistration:
    def __init__(
        self,
        relying_party: RelyingParty | None,
        challenges: PasskeyChallenges,
        store: PasskeyStore,
        changes: PasskeyChanges,
        rate_limiter: LoginRateLimiter,
    ) -> None:
        self._relying_party = relying_party
        self._challenges = challenges
        self._store = store
        self._changes = changes
        self._rate_limiter = rate_limiter
        self._verifier = PasskeyVerifier(relying_party) if relying_party else None

    def options(self, session: Session, existing: Sequence[Passkey]) -> str:
        """Returns the options for the page; "" if passkeys do not work at this base URL."""
        if self._relying_party is None:
            return ""
        challenge = self._challenges.create(ChallengePurpose.REGISTER, session_binding(session))
        handle = user_handle(session.user, challenge)
        return script_data(registration_options(self._relying_party, session.user, handle, challenge, existing))

    async def register(self, session: Session, credential: str, name: str, address: Address) -> FactorChange:
        """Adds the passkey to the account of the session. Raises InvalidPasskey, or RetryLater."""
        await self._rate_limiter.charge_address(address)
        answer = parse_answer(credential)
        challenge = self._challenges.check(answer.challenge, ChallengePurpose.REGISTER, session_binding(session))
        if self._verifier is None or challenge is None or not await self._store.use_challenge(challenge):
            raise InvalidPasskey
        new = await self._verifier.verify_registration(address, answer)
        change = await self._changes.add(session.user, challenge, answer, new, name)
        if change is None:
            raise InvalidPasskey
        await self._rate_limiter.refund_address(address)
        return change
