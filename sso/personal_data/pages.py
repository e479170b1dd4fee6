"""Forms of the account page for the export and the deletion of the account, and the page that keeps a closed one."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from quart import Blueprint, Response

from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.errors import TooManyAttempts
from sso.accounts.form_problem import FormProblem
from sso.accounts.history.texts import format_day
from sso.accounts.login.messages import retry_problem
from sso.accounts.session_store import Session
from sso.db.database import Database
from sso.db.rate_limit import WindowLimiter
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.errors import DeletionRefused
from sso.personal_data.export import export_user
from sso.web.cookies import SESSION_COOKIE, delete_cookie
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import see_other

FILE_NAME = "account-data.json"
EXPORTS, EXPORT_WINDOW_S = 5, 3600  # for one user


class DataSection:
    def __init__(self, deletion: AccountDeletion) -> None:
        self._deletion = deletion

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        return {"deletion_days": self._deletion.days}


def personal_data_pages(account: AccountView, database: Database, deletion: AccountDeletion) -> Blueprint:
    routes = Blueprint("personal_data", __name__, url_prefix="/account")
    exports = WindowLimiter("export", EXPORTS, EXPORT_WINDOW_S)

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    @routes.get("/export")
    async def show_export() -> Response:
        return see_other("/account#data")

    @routes.post("/export")
    async def export() -> Response:
        session, form = await account.submitted_form()
        if problem := await account.confirm(session, form):
            return await account.show(session, problem, "export")
        if wait_s := await database.transaction(exports.add, session.user.user_id):
            error = TooManyAttempts(wait_s)
            return await account.show(session, retry_problem(error), "export")
        document = await export_user(database, session.user.user_id)
        return Response(
            document,
            content_type="application/json",
            headers={"Content-Disposition": f'attachment; filename="{FILE_NAME}"', "Cache-Control": "no-store"},
        )

    @routes.post("/delete")
    async def delete() -> Response:
        session, form = await account.submitted_form()
        if problem := await account.confirm(session, form):
            return await account.show(session, problem, "delete")
        try:
            due = await deletion.request(session.user, session.user.valid_from)
        except DeletionRefused as error:
            return await account.show(session, FormProblem(error.text, error.status), "delete")
        if due is None:
            return see_other("/account")
        response = await page(
            "message.html",
            page_title=_("Your account is closed"),
            heading=_("Your account is closed"),
            message=_(
                "It will be deleted on %(date)s. To keep it, sign in before that day. We have sent you an e-mail.",
                date=format_day(due),
            ),
        )
        delete_cookie(response, SESSION_COOKIE)
        return response

    return routes
