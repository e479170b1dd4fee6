"""The page that shows new recovery codes once, their download as a text file, and the form that makes new ones."""

from urllib.parse import urlencode

from quart import Blueprint, Response, current_app, request

from sso.accounts.account_page.notices import NOTICES
from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.model import User
from sso.accounts.second_factor.recovery_codes import RecoveryCodes
from sso.accounts.second_factor.shown_codes import SHOWN_S, ShownCodes
from sso.web.cookies import CODES_COOKIE, delete_cookie, read_sealed_cookie, set_cookie
from sso.web.csrf import csrf_token
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import safe_next, see_other

PATH = "/account/recovery-codes"
FILE_NAME = "recovery-codes.txt"


def redirect_to_codes(
    response: Response, shown: ShownCodes, user: User, codes: tuple[str, ...], done: str = "", next_path: str = ""
) -> Response:
    """Changes a redirect: it leads to the page that shows the codes, and from there to ``next_path``."""
    query = urlencode({name: value for name, value in (("done", done), ("next", next_path)) if value})
    response.headers["Location"] = f"{PATH}?{query}" if query else PATH
    set_cookie(response, CODES_COOKIE, shown.encrypt(user, codes), SHOWN_S)
    return response


def recovery_code_pages(account: AccountView, recovery_codes: RecoveryCodes, shown: ShownCodes) -> Blueprint:
    routes = Blueprint("recovery_codes", __name__, url_prefix=PATH)

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    @routes.get("")
    async def show() -> Response:
        session = await account.session()
        codes = shown.decrypt(session.user, read_sealed_cookie(CODES_COOKIE))
        notice, next_path = NOTICES.get(request.args.get("done", "")), request.args.get("next")
        if not codes:
            return see_other(safe_next(next_path))
        response = await page(
            "recovery_codes.html",
            page_title=_("Your recovery codes"),
            user=session.user,
            csrf=csrf_token(session.secret),
            notice=notice.text if notice else None,
            codes=codes,
            sealed_codes=shown.encrypt(session.user, codes),
            next=safe_next(next_path) if next_path else "",
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
        response = see_other("/account")
        return redirect_to_codes(response, shown, session.user, codes) if codes else response

    @routes.post("/download")
    async def download() -> Response:
        session, form = await account.submitted_form()
        codes = shown.decrypt(session.user, form.get("codes", ""))
        if not codes:
            return see_other("/account")
        title = _(
            "Recovery codes for %(service)s, %(login)s",
            service=current_app.config["SERVICE_NAME"],
            login=session.user.login,
        )
        advice = _("Each code works once. Keep them in a safe place.")
        text = "\r\n".join([str(title), str(advice), "", *codes, ""])
        disposition = {"Content-Disposition": f'attachment; filename="{FILE_NAME}"'}
        return Response(text, 200, disposition, content_type="text/plain; charset=utf-8")

    return routes
