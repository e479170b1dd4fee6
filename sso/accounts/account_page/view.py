"""The account page: the session it belongs to, the checks of its forms, and its rendering."""

from collections.abc import Sequence
from typing import Any

from quart import Response, request

from sso.accounts.account_page.notices import Notice
from sso.accounts.account_page.sections import AccountSection
from sso.accounts.authentication_context import AuthenticationContext
from sso.accounts.form_problem import FormProblem
from sso.accounts.login.messages import PASSWORDS_DIFFER, retry_problem
from sso.accounts.login.password_login import PasswordLogin
from sso.accounts.login.view import next_query
from sso.accounts.password_rules import MIN_LENGTH, UnacceptablePassword
from sso.accounts.recent_authentication import WRONG_PASSWORD, RecentAuthentication, device_of
from sso.accounts.second_factor.earlier_factors import EarlierFactors
from sso.accounts.second_factor.shown_codes import ShownCodes
from sso.accounts.session_store import Session
from sso.accounts.visitor import Visitor
from sso.core.errors import RetryLater
from sso.db.clock import DatabaseClock
from sso.web.client_connection import client_connection
from sso.web.cookies import CODES_COOKIE, delete_cookie, read_sealed_cookie
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.request import client_address


class NotSignedIn(Exception):
    """The browser has no session; it is sent to the login page and then back."""


class AccountView:
    def __init__(
        self,
        visitor: Visitor,
        password_login: PasswordLogin,
        recent: RecentAuthentication,
        shown_codes: ShownCodes,
        sections: Sequence[AccountSection],
        clock: DatabaseClock,
    ) -> None:
        self._visitor = visitor
        self._password_login = password_login
        self._recent = recent
        self._shown_codes = shown_codes
        self._sections = sections
        self._clock = clock

    async def session(self, *, may_enrol: bool = False) -> Session:
        """Returns the session of the browser, or raises NotSignedIn.

        With ``may_enrol`` also a session whose user must set up a second factor before anything else.
        """
        session = await self._visitor.session(may_enrol=may_enrol)
        if session is None:
            raise NotSignedIn
        return session

    async def submitted_form(self, *, may_enrol: bool = False) -> tuple[Session, dict[str, str]]:
        """Returns the session and the fields of a form, after checking its CSRF token."""
        form = await form_fields()
        session = await self.session(may_enrol=may_enrol)
        check_csrf(session.secret, form.get("csrf"))
        return session, form

    async def confirm(self, session: Session, form: dict[str, str]) -> FormProblem | None:
        """Returns None if the user of the form has authenticated recently or with this form, else what is wrong."""
        return await self._recent.confirm(session, form)

    async def prove_earlier_factor(
        self, session: Session, form: dict[str, str], factors: EarlierFactors
    ) -> FormProblem | None:
        """Returns None if the form proves one of these factors, else what is wrong. A recent proof is not enough."""
        return await self._recent.prove_earlier_factor(session, form, factors)

    async def authenticate(self, session: Session, form: dict[str, str]) -> AuthenticationContext | FormProblem:
        """Like `confirm`, for a change that restarts the session. Returns the authentication of the new session."""
        return await self._recent.authenticate(session, form)

    async def new_password_hash(self, session: Session, form: dict[str, str]) -> str | FormProblem:
        """Checks the form for a new password and returns the new hash, or what is wrong."""
        current, new = form.get("current_password", ""), form.get("new_password", "")
        if new != form.get("repeat_password", ""):
            return PASSWORDS_DIFFER
        origin = client_address(), device_of(session)
        try:
            with client_connection().cancel_on_disconnect():
                password_hash = await self._password_login.new_password_hash(session.user, current, new, *origin)
        except UnacceptablePassword as error:
            return FormProblem(error.text, field="new_password")
        except RetryLater as error:
            return retry_problem(error)
        return password_hash or WRONG_PASSWORD

    def is_recent(self, session: Session) -> bool:
        return self._recent.is_recent(session)

    async def show(
        self,
        session: Session,
        problem: FormProblem | None = None,
        opened: str = "",
        done: Notice | None = None,
        **context: Any,
    ) -> Response:
        """``opened`` is the form that the problem is about, such as "password"; ``done`` tells of a finished change."""
        user = session.user
        if done:
            context |= {"notice": done.text, "notice_section": done.section}
        now = self._clock.utc()
        for section in self._sections:
            context |= await section.values(session, now)
        codes = self.new_recovery_codes(session)
        response = await page(
            "enrol.html" if session.must_enrol else "account.html",
            status=problem.status if problem else 200,
            headers=problem.headers if problem else None,
            problem=problem.text if problem else None,
            problem_field=problem.field if problem else "",
            opened=opened,
            page_title=_("Protect your account") if session.must_enrol else _("Your account"),
            user=user,
            csrf=csrf_token(session.secret),
            password_min=MIN_LENGTH,
            totp_on=user.totp_sealed is not None,
            email_2fa_on=user.email_2fa,
            second_factors=user.second_factors,
            recent=self.is_recent(session),
            next_query=next_query(request.args.get("next")),
            **codes,
            **context,
        )
        if codes:
            delete_cookie(response, CODES_COOKIE)
        return response

    def new_recovery_codes(self, session: Session) -> dict[str, Any]:
        """Returns the template values of recovery codes that were just made, to be shown once; empty without any."""
        if not (sealed := read_sealed_cookie(CODES_COOKIE)):
            return {}
        codes = self._shown_codes.decrypt(session.user, sealed)
        return {"new_recovery_codes": codes, "sealed_recovery_codes": sealed} if codes else {}
