"""Recent authentication in the console: before a change, administrators prove again who they are."""

from typing import Any

from sso.accounts.form_problem import FormProblem
from sso.accounts.login.messages import mail_code
from sso.accounts.passkeys.authentication import PasskeyAuthentication
from sso.accounts.recent_authentication import RecentAuthentication
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.session_store import Session
from sso.console.visit import ConsoleVisit
from sso.core.language import Text

PROOF_FIELDS = frozenset({"csrf", "current_password", "present_otp", "credential"})


class ConfirmationNeeded(Exception):
    """The user must prove again who they are before a change."""

    def __init__(self, visit: ConsoleVisit, form: dict[str, str], outcome: FormProblem | Text | None) -> None:
        """``outcome``: what is wrong with the proof, or the text that says that a code was mailed."""
        self.visit, self.form, self.outcome = visit, form, outcome


class ConsoleConfirmation:
    def __init__(self, recent: RecentAuthentication, factors: SecondFactors, passkeys: PasskeyAuthentication) -> None:
        self._recent = recent
        self._factors = factors
        self._passkeys = passkeys

    def is_recent(self, session: Session) -> bool:
        return self._recent.is_recent(session)

    async def require(self, visit: ConsoleVisit, form: dict[str, str]) -> None:
        """Returns if the user has authenticated recently, or the form has the proof. Raises ConfirmationNeeded."""
        if form.pop("send_code", "") and visit.session.user.email_2fa:
            raise ConfirmationNeeded(visit, form, await mail_code(self._factors, visit.session.user))
        # An empty password is no proof: the form has the field in any case.
        proof = {name: form[name] for name in PROOF_FIELDS if form.get(name)}
        if not visit.is_recent and not proof.keys() & {"current_password", "credential"}:
            raise ConfirmationNeeded(visit, form, None)
        if problem := await self._recent.confirm(visit.session, proof):
            raise ConfirmationNeeded(visit, form, problem)
        for name in PROOF_FIELDS:
            form.pop(name, None)

    async def page(self, needed: ConfirmationNeeded) -> dict[str, Any]:
        """Returns the arguments of the page that asks for the proof, and sends the form again with it."""
        session, outcome = needed.visit.session, needed.outcome
        problem = outcome if isinstance(outcome, FormProblem) else None
        return {
            "title": "Confirm that it is you",
            "status": problem.status if problem else 403,
            "headers": problem.headers if problem else None,
            "problem": problem.text if problem else None,
            "fields": {name: value for name, value in needed.form.items() if name not in PROOF_FIELDS},
            "second_factors": session.user.second_factors,
            "passkey_confirmation": await self._passkeys.confirm_options(session),
            "notice": None if problem else outcome,
        }
