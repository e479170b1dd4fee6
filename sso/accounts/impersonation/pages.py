"""The page of the link with which an administrator opens the account of a player, and the button that closes it."""

from quart import Blueprint, Response, request

from sso.accounts.impersonation.operations import PATH, Impersonations
from sso.accounts.impersonation.visitor import ACCOUNT, END, ImpersonatedVisits
from sso.web.cookies import (
    IMPERSONATION_COOKIE,
    VISIT_COOKIE,
    delete_cookie,
    is_secret,
    read_cookie,
    set_cookie,
    visit_secret,
)
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other
from sso.web.request import client_address


def impersonation_pages(impersonations: Impersonations, visits: ImpersonatedVisits) -> Blueprint:
    routes = Blueprint("impersonation", __name__)

    @routes.get(PATH)
    async def ask() -> Response:
        """Opening the link changes nothing, because programs open links too."""
        token = _token(request.args.get("token"))
        found = await impersonations.find_link(token)
        if found is None:
            return await show_invalid_link()
        secret, is_new = visit_secret()
        name = found.user.nick or found.user.login
        response = await page(
            "email_link.html",
            page_title=_("Open an account as support"),
            heading=_("Open an account as support"),
            message=_("You will see the account page of %(name)s, who gets a mail about it.", name=name),
            button=_("Open the account"),
            action=PATH,
            token=token,
            csrf=csrf_token(secret),
        )
        if is_new:
            set_cookie(response, VISIT_COOKIE, secret)
        return response

    @routes.post(PATH)
    async def begin() -> Response:
        form = await form_fields()
        check_csrf(read_cookie(VISIT_COOKIE), form.get("csrf"))
        begun = await impersonations.start(_token(form.get("token")), client_address())
        if begun is None:
            return await show_invalid_link()
        started, secret = begun
        response = see_other(ACCOUNT)
        set_cookie(response, IMPERSONATION_COOKIE, secret, started.minutes * 60)
        return response

    @routes.post(END)
    async def end() -> Response:
        """Works as well when the visit was ended elsewhere: the administrator is back in their own account."""
        form, secret = await form_fields(), read_cookie(IMPERSONATION_COOKIE)
        check_csrf(secret, form.get("csrf"))
        if visit := await visits.find(secret):
            await impersonations.end(visit, client_address())
        response = see_other(ACCOUNT)
        delete_cookie(response, IMPERSONATION_COOKIE)
        return response

    return routes


async def show_invalid_link() -> Response:
    return await page(
        "message.html",
        status=410,
        page_title=_("Link expired"),
        heading=_("This link no longer works"),
        message=_("This link no longer works. It may have been used already, or it has expired."),
    )


def _token(text: str | None) -> str:
    return text if text and is_secret(text) else ""
