"""Renders the pages of a registration."""

from collections.abc import Mapping
from typing import Any

from quart import Response

from sso.accounts.login.flow import LoginFlow
from sso.accounts.login.view import next_query
from sso.accounts.password_rules import MIN_LENGTH
from sso.accounts.registration.challenge import RegistrationChallenge
from sso.accounts.registration.completion import RegistrationLink
from sso.core.language import Text
from sso.web.cookies import VISIT_COOKIE, set_cookie, visit_secret
from sso.web.csrf import csrf_token
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import safe_next
from sso.web.request import client_address

TITLE = _("Create an account")


async def show_email_form(
    challenge: RegistrationChallenge,
    flow: LoginFlow | None,
    next_path: str | None,
    form: Mapping[str, str],
    **context: Any,
) -> Response:
    """``form`` has the fields of a rejected form; ``context`` has its problem."""
    return await _form_page(
        "register.html",
        next_path,
        site=flow.title if flow else "",
        challenge=await challenge.issue(form),
        email=form.get("email", ""),
        **context,
    )


async def show_code_form(flow: LoginFlow | None, next_path: str | None, login: str, **context: Any) -> Response:
    return await _form_page("register_code.html", next_path, site=flow.title if flow else "", email=login, **context)


async def show_completion_form(
    link: RegistrationLink, flow: LoginFlow | None, *, may_complete: bool, **context: Any
) -> Response:
    """``may_complete``: the form also completes the flow, so it shows what the flow is about."""
    details = flow.details(client_address()) if flow and may_complete else {}
    return await _form_page(
        "register_complete.html",
        None,
        site=flow.title if flow else "",
        form_targets=flow.form_targets if flow else (),
        email=link.login,
        token=link.secret,
        password_min=MIN_LENGTH,
        **details,
        **context,
    )


async def _form_page(template: str, next_path: str | None, **context: Any) -> Response:
    secret, is_new = visit_secret()
    response = await page(
        template,
        page_title=TITLE,
        csrf=csrf_token(secret),
        next=safe_next(next_path) if next_path else "",
        login_url=f"/login{next_query(next_path)}",
        register_url=f"/register{next_query(next_path)}",
        **context,
    )
    if is_new:
        set_cookie(response, VISIT_COOKIE, secret)
    return response


async def show_refusal(mode: str) -> Response:
    if mode == "invite":
        heading, message = _("By invitation only"), _("To create an account, open the link in your invitation.")
    else:
        heading, message = _("Registration is closed"), _("New accounts cannot be created here at the moment.")
    return await _message_page(403, heading, message)


async def show_expired_link() -> Response:
    return await _message_page(
        410,
        _("This link no longer works"),
        _("It was used, it has expired, or it was withdrawn. If you have an account, sign in; otherwise start again."),
    )


async def show_login_taken() -> Response:
    return await _message_page(
        409,
        _("You already have an account"),
        _("There is already an account with your e-mail address. Please sign in."),
    )


async def _message_page(status: int, heading: Text, message: Text) -> Response:
    return await page(
        "message.html",
        status=status,
        page_title=heading,
        heading=heading,
        message=message,
        link="/login",
        link_text=_("Sign in"),
    )
