"""The page that users see who sign in to a closed account: when it will be deleted, and a form that keeps it."""

from typing import Any

from quart import Blueprint, Response

from sso.accounts.account_page.notices import account_url
from sso.accounts.authentication_context import AuthenticationContext
from sso.accounts.errors import AccountClosed, InvalidCredentials, SecondFactorBlocked
from sso.accounts.form_problem import FormProblem
from sso.accounts.history.texts import format_day
from sso.accounts.login.flow import LoginFlows, form_targets_of_path
from sso.accounts.login.messages import code_problem, mail_code
from sso.accounts.login.password_login import PasswordLogin
from sso.accounts.login.view import LoginCompletion, next_query
from sso.accounts.model import SignedIn, User
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.session_store import Session
from sso.core.errors import ApiError, RetryLater
from sso.personal_data.closed_account import KeepTickets
from sso.personal_data.deletion import AccountDeletion
from sso.web import language
from sso.web.cookies import VISIT_COOKIE, read_cookie, set_cookie, visit_secret
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import safe_next, see_other
from sso.web.request import client_address


class ClosedAccountPage:
    """Shown in place of every sign-in by page to an account that is going to be deleted."""

    def __init__(self, tickets: KeepTickets, factors: SecondFactors, login_flows: LoginFlows) -> None:
        self._tickets = tickets
        self._factors = factors
        self._login_flows = login_flows

    async def show(self, closed: AccountClosed, next_path: str | None) -> Response:
        language.use_user_language(closed.user.lang)
        outcome = await mail_code(self._factors, closed.user) if closed.needs_code else None
        told = {"notice": outcome.text} if isinstance(outcome, FormProblem) else {}
        visit, is_new = visit_secret()
        ticket = self._tickets.issue(closed, visit)
        response = await self.render(
            closed.user,
            ticket,
            next_path,
            visit=visit,
            needs_code=closed.needs_code,
            status=closed.status,
            **told,
        )
        if is_new:
            set_cookie(response, VISIT_COOKIE, visit)
        return response

    async def render(
        self,
        user: User,
        ticket: str,
        next_path: str | None,
        *,
        visit: str,
        needs_code: bool,
        status: int,
        **context: Any,
    ) -> Response:
        return await page(
            "account_closed.html",
            status=status,
            page_title=_("Your account is closed"),
            date=format_day(user.deletion_due) if user.deletion_due else "",
            login=user.login,
            can_be_kept=user.can_be_kept,
            ticket=ticket,
            needs_code=needs_code,
            second_factors=user.second_factors,
            csrf=csrf_token(visit),
            next=safe_next(next_path) if next_path else "",
            form_targets=await form_targets_of_path(self._login_flows, next_path),
            **context,
        )


def keep_pages(
    closed_page: ClosedAccountPage,
    tickets: KeepTickets,
    deletion: AccountDeletion,
    password_login: PasswordLogin,
    factors: SecondFactors,
    login_flows: LoginFlows,
    completion: LoginCompletion,
) -> Blueprint:
    routes = Blueprint("keep_account", __name__)

    @routes.post("/login/keep")
    async def keep() -> Response:
        form = await form_fields()
        visit = read_cookie(VISIT_COOKIE)
        check_csrf(visit, form.get("csrf"))
        next_path = form.get("next")
        ticket = await tickets.read(form.get("ticket", ""), visit)
        if ticket is None:
            return see_other("/login" + next_query(next_path))
        user, authentication = ticket.user, ticket.authentication
        language.use_user_language(user.lang)
        if ticket.needs_code:
            checked = await check_code(user, form.get("otp", ""), authentication)
            if isinstance(checked, FormProblem):
                return await closed_page.render(
                    user,
                    form["ticket"],
                    next_path,
                    visit=visit,
                    needs_code=True,
                    status=checked.status,
                    problem=checked.text,
                    headers=checked.headers,
                )
            authentication = checked.authentication
        kept = await deletion.keep(user)
        if kept is None:
            return see_other("/login" + next_query(next_path))
        signed_in = SignedIn(kept, authentication)
        if await completion.must_prove_second_factor(signed_in):
            return await completion.ask_for_second_factor(signed_in, next_path)
        session = await completion.start_session(signed_in)
        return completion.redirect(session, await continue_path(session, next_path))

    async def continue_path(session: Session, next_path: str | None) -> str:
        """Returns where the sign-in led. The page did not show what the flow is about, so the flow asks."""
        try:
            flow = await login_flows.find(safe_next(next_path)) if next_path else None
        except ApiError:  # the flow has ended; the account is kept all the same
            return account_url("kept")
        if flow is None:
            return _welcome(next_path)
        return flow.continue_path if session.is_usable else "/login" + next_query(next_path)

    async def check_code(user: User, code: str, first: AuthenticationContext) -> SignedIn | FormProblem:
        try:
            return await password_login.check_code(user, code, client_address(), first=first)
        except (InvalidCredentials, SecondFactorBlocked, RetryLater) as error:
            return code_problem(error, factors, user, code)

    return routes


def _welcome(next_path: str | None) -> str:
    """Returns the account page with a notice, unless the user was on the way to another page."""
    path = safe_next(next_path)
    return account_url("kept") if path == "/account" else path
