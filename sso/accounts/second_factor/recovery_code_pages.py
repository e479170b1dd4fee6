"""The page that shows new recovery codes once, their download as a text file, and the form that makes new ones."""

from urllib.parse import quote

from quart import Blueprint, Response, current_app, request

from sso.accounts.account_page.notices import account_url
from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.model import User
from sso.accounts.second_factor.recovery_codes import RecoveryCodes
from sso.accounts.second_factor.shown_codes import SHOWN_S, ShownCodes
from sso.web.cookies import CODES_COOKIE, delete_cookie, set_cookie
from sso.web.csrf import csrf_token
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import safe_next, see_other

PATH = "/account/recovery-codes"
FILE_NAME = "recovery-codes.txt"


def show_codes_next(
    response: Response, shown: ShownCodes, user: User, codes: tuple[str, ...], next_path: str = ""
) -> Response:
    """Adds codes to a redirect to the account page, which then shows them.

    With ``next_path``, a page of their own shows them and continues there.
    """
    if next_path:
        response.headers["Location"] = recovery_codes_path(next_path)
    keep_codes(response, shown, user, codes)
    return response


def recovery_codes_path(next_path: str) -> str:
    """Returns the path of the page that shows new codes and continues at ``next_path``."""
    return f"{PATH}?next={quote(safe_next(next_path))}"


def keep_codes(response: Response, shown: ShownCodes, user: User, codes: tuple[str, ...]) -> None:
    """Keeps codes in the browser until a page shows them."""
    set_cookie(response, CODES_COOKIE, shown.encrypt(user, codes), SHOWN_S)


def recovery_code_pages(account: AccountView, recovery_codes: RecoveryCodes, shown: ShownCodes) -> Blueprint:
    routes = Blueprint("recovery_codes", __name__, url_prefix=PATH)

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    @routes.get("")
    async def show() -> Response:
        session = await account.session()
        next_path = safe_next(request.args.get("next"))
        values = account.new_recovery_codes(session)
        if not values:
            return see_other(next_path)
        response = await page(
            "recovery_codes.html",
            here="",
            page_title=_("Your recovery codes"),
            user=session.user,
            csrf=csrf_token(session.secret),
            next=next_path,
            **values,
        )
        delete_cookie(response, CODES_COOKIE)
        return response

    @routes.post("")
    async def make_new() -> Response:
        session, form = await account.submitted_form()
        if not session.user.second_factors:
            return see_other("/account")
        if problem := await account.confirm(session, form):
            return await account.show(session, problem, "recovery")
        codes = await recovery_codes.make_new(session.user)
        if codes is None:
            return see_other("/account")
        return show_codes_next(see_other(account_url("recovery-codes")), shown, session.user, codes)

    @routes.post("/download")
    async def download() -> Response:
        session, form = await account.submitted_form()
        codes = shown.decrypt(session.user, form.get("codes", ""))
        if not codes:
            return see_other("/account")
        title = _(
            "Recovery codes for %(service)s, %(login)s",
            service=current_app.jinja_env.globals["service_name"],
            login=session.user.login,
        )
        advice = _("Each code works once. Keep them in a safe place.")
        text = "\r\n".join([title.translated(), advice.translated(), "", *codes, ""])
        disposition = {"Content-Disposition": f'attachment; filename="{FILE_NAME}"'}
        return Response(text, 200, disposition, content_type="text/plain; charset=utf-8")

    return routes
