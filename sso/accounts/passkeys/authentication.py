"""Authentication with passkeys: sign-in without a password, the second factor of a login, and recent authentication."""

from datetime import datetime

import structlog

from sso.accounts.authentication_context import by_passkey
from sso.accounts.errors import InvalidCredentials
from sso.accounts.login import login_metrics
from sso.accounts.login.login_metrics import count_login
from sso.accounts.login.rate_limit import LoginRateLimiter
from sso.accounts.model import SignedIn, User
from sso.accounts.passkeys.challenges import ChallengePurpose, PasskeyChallenges, encode_base64url
from sso.accounts.passkeys.credential import InvalidPasskey, parse_answer
from sso.accounts.passkeys.options import request_options, script_data
from sso.accounts.passkeys.relying_party import RelyingParty
from sso.accounts.passkeys.store import PasskeyOwner, PasskeyStore
from sso.accounts.passkeys.verification import PasskeyVerifier
from sso.accounts.session_store import Session
from sso.core.brand import CurrentBrand
from sso.core.language import Text
from sso.core.net import Address
from sso.db.database import Database
from sso.db.rate_limit import claim_turn
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox
from sso.web.request import client_address

COPY_PAUSE_S = 3600

log = structlog.get_logger()


class PasskeyAuthentication:
    """Every method returns or raises the same for an unknown passkey, a wrong signature and a replayed challenge."""

    def __init__(
        self,
        relying_party: RelyingParty | None,
        challenges: PasskeyChallenges,
        store: PasskeyStore,
        rate_limiter: LoginRateLimiter,
        database: Database,
        outbox: Outbox,
        brand: CurrentBrand,
    ) -> None:
        self.relying_party = relying_party
        self._challenges = challenges
        self._store = store
        self._verifier = PasskeyVerifier(relying_party) if relying_party else None
        self._rate_limiter = rate_limiter
        self._database = database
        self._outbox = outbox
        self._brand = brand

    def sign_in_challenge(self, visit: str) -> str:
        """Returns the challenge for the sign-in form; "" if passkeys do not work at this base URL."""
        if self.relying_party is None:
            return ""
        return encode_base64url(self._challenges.create(ChallengePurpose.SIGN_IN, visit))

    async def sign_in(self, credential: str, visit: str, address: Address) -> SignedIn:
        """Signs in the owner of the passkey. Raises InvalidCredentials, or RetryLater."""
        check = self._authenticate(credential, ChallengePurpose.SIGN_IN, visit, address)
        owner = await count_login(login_metrics.PASSKEY, check)
        return SignedIn(owner.user, by_passkey())

    async def second_factor_options(self, user: User, visit: str) -> str:
        """Returns the options for the page that asks for the second factor; "" if the user has no passkey."""
        return await self._options(user, ChallengePurpose.SECOND_FACTOR, _second_factor(user, visit), verify=False)

    async def check_second_factor(self, user: User, credential: str, visit: str, address: Address) -> None:
        """Checks the passkey of a user whose first factor was correct. Raises InvalidCredentials, or RetryLater."""
        browser = _second_factor(user, visit)
        check = self._authenticate(credential, ChallengePurpose.SECOND_FACTOR, browser, address, user.user_id)
        await count_login(login_metrics.PASSKEY, check)

    async def confirm_options(self, session: Session) -> str:
        """Returns the options for the forms of the account page; "" if the user has no passkey."""
        return await self._options(session.user, ChallengePurpose.CONFIRM, session_binding(session), verify=True)

    async def confirm(self, session: Session, credential: str, before: datetime | None = None) -> bool:
        """Returns whether a passkey of the session's user has signed a challenge of this session. Raises RetryLater.

        ``before``: the passkey must have been added before that moment.
        """
        try:
            owner = await self._authenticate(
                credential,
                ChallengePurpose.CONFIRM,
                session_binding(session),
                client_address(),
                session.user.user_id,
            )
        except InvalidCredentials:
            return False
        return before is None or owner.created < before

    async def _options(self, user: User, purpose: ChallengePurpose, browser: str, *, verify: bool) -> str:
        if self.relying_party is None or not user.passkey_count:
            return ""
        challenge = self._challenges.create(purpose, browser)
        passkeys = await self._store.list(user.user_id)
        return script_data(request_options(self.relying_party, challenge, passkeys, user_verification=verify))

    async def _authenticate(
        self, credential: str, purpose: ChallengePurpose, browser: str, address: Address, user_id: str = ""
    ) -> PasskeyOwner:
        """Returns the owner, who must have ``user_id`` if it is given. Raises InvalidCredentials, or RetryLater.

        An answer is counted for its address before it is read.
        """
        await self._rate_limiter.charge_address(address)
        try:
            owner = await self._verify(credential, purpose, browser, address, user_id)
        except InvalidPasskey:
            raise InvalidCredentials from None
        await self._rate_limiter.refund_address(address)
        return owner

    async def _verify(
        self, credential: str, purpose: ChallengePurpose, browser: str, address: Address, user_id: str
    ) -> PasskeyOwner:
        answer = parse_answer(credential)
        challenge = self._challenges.check(answer.challenge, purpose, browser)
        if self._verifier is None or challenge is None:
            raise InvalidPasskey
        owner = await self._store.use_challenge_and_find(challenge, answer.credential_id)
        if owner is None or not _is_expected_owner(owner.user, user_id, answer.user_handle):
            raise InvalidPasskey
        must_verify_user = purpose is not ChallengePurpose.SECOND_FACTOR
        sign_count = await self._verifier.verify_assertion(
            address, answer, owner.public_key, user_verification=must_verify_user
        )
        if not await self._store.record_use(answer.credential_id, sign_count):
            await self._report_copy(owner.user)
            raise InvalidPasskey
        return owner

    async def _report_copy(self, user: User) -> None:
        """The counter went back: the passkey may have been copied from a damaged or stolen device.

        The user gets at most one mail in COPY_PAUSE_S.
        """
        log.warning("passkey.copy_suspected", user_id=user.user_id)
        mail = _copy_mail(self._brand.name)

        async def work(tx: Transaction) -> None:
            if await claim_turn(tx, f"passkey copy:{user.user_id}", COPY_PAUSE_S):
                await self._outbox.put(tx, user.login, mail, user.lang)

        await self._database.transaction(work)


def _is_expected_owner(owner: User, user_id: str, handle: bytes | None) -> bool:
    """Without a ``user_id`` the passkey must name its user by the handle; with one, it need not."""
    if user_id and owner.user_id != user_id:
        return False
    return handle == owner.passkey_handle if handle or not user_id else True


def session_binding(session: Session) -> str:
    return f"{session.id}:{session.user.user_id}:{session.user.valid_from}"


def _second_factor(user: User, visit: str) -> str:
    return f"{visit}:{user.user_id}" if visit else ""


def _copy_mail(service_name: str) -> MailContent:
    return MailContent(
        Text("A passkey for %(service)s was refused", service=service_name),
        (
            Text("Someone used one of your passkeys, but its counter shows that there may be a copy of it."),
            Text("If you do not know why, sign in in another way and remove the passkey from your account."),
        ),
    )
