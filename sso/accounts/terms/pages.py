"""The page that asks a user for the terms, before a session can be used. It works without JavaScript."""

from quart import Blueprint, Response, request

from sso.accounts.form_problem import FormProblem
from sso.accounts.login.flow import LoginFlows, form_targets_of_path
from sso.accounts.login.view import ENROL_PATH, next_query
from sso.accounts.session_store import Session
from sso.accounts.terms.acceptance_store import AcceptanceStore
from sso.accounts.terms.terms import TERMS_PATH, Terms
from sso.accounts.visitor import Visitor
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import safe_next, see_other


def terms_pages(visitor: Visitor, terms: Terms, login_flows: LoginFlows, acceptances: AcceptanceStore) -> Blueprint:
    routes = Blueprint("terms", __name__)

    @routes.get(TERMS_PATH)
    async def ask() -> Response:
        next_path = request.args.get("next")
        session = await visitor.session(may_enrol=True, may_accept=True)
        if session is None:
            return see_other("/login" + next_query(next_path))
        return await show(session, next_path) if session.must_accept else continue_at(session, next_path)

    @routes.post(TERMS_PATH)
    async def accept() -> Response:
        form = await form_fields()
        next_path = form.get("next")
        session = await visitor.session(may_enrol=True, may_accept=True)
        if session is None:
            return see_other("/login" + next_query(next_path))
        check_csrf(session.secret, form.get("csrf"))
        if session.must_accept:
            if problem := terms.problem(form):
                return await show(session, next_path, problem, form)
            await acceptances.accept(session.user.user_id, terms.version)
        return continue_at(session, next_path)

    def continue_at(session: Session, next_path: str | None) -> Response:
        if session.must_enrol:
            return see_other(ENROL_PATH + next_query(next_path))
        return see_other(safe_next(next_path))

    async def show(
        session: Session,
        next_path: str | None,
        problem: FormProblem | None = None,
        form: dict[str, str] | None = None,
    ) -> Response:
        return await page(
            "terms.html",
            status=problem.status if problem else 200,
            problem=problem.text if problem else None,
            wrong=problem.field if problem else "",
            form=form or {},
            page_title=_("Terms"),
            user=session.user,
            csrf=csrf_token(session.secret),
            action=TERMS_PATH,
            next=safe_next(next_path) if next_path else "",
            form_targets=await form_targets_of_path(login_flows, next_path),
            here=TERMS_PATH + next_query(next_path),
        )

    return routes
