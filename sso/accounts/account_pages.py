"""The account page: password, second factors, sessions.

What a borrowed browser must not change asks for the password.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import segno
from quart import Blueprint, Response, request

from sso.accounts.errors import TryLater
from sso.accounts.games import Games, NamedGame
from sso.accounts.model import User
from sso.accounts.pages import Visitor, device, try_later
from sso.accounts.second_factor import SecondFactors
from sso.accounts.sessions import Session, SessionStore
from sso.accounts.signin import SignIn
from sso.accounts.sites import SiteLine, Sites
from sso.accounts.users import UserStore
from sso.core.language import Text, either
from sso.core.sealed import Keyring, SealError
from sso.web import browser
from sso.web.browser import SESSION
from sso.web.http import address
from sso.web.language import _
from sso.web.pages import form_fields, page, see_other
from sso.web.wire import wire

PASSWORD_LEAST, PASSWORD_MOST = 8, 1024
DONE = {
    "password": _("Your password is changed. You are signed out everywhere else."),
    "totp": _("Two-step sign-in with your app is on."),
    "totp-removed": _("The authenticator app is removed."),
    "email-2fa": _("Your choice is saved."),
    "ended": _("That session is signed out."),
    "ended-others": _("You are signed out everywhere else."),
    "game-ended": _("That game is signed out."),
    "site-removed": _("That site has no access to your account any more."),
}


Change = Callable[[User, dict[str, str]], Awaitable[None]]


@dataclass(frozen=True)
class Problem:
    """Why a form was not accepted."""

    text: str
    status: int = 422
    headers: Mapping[str, str] = field(default_factory=dict)


WRONG_PASSWORD = Problem(_("Your current password is not right."))


class NotSignedIn(Exception):
    """To the sign-in page and back."""


def account_pages(
    visitor: Visitor,
    signin: SignIn,
    users: UserStore,
    sessions: SessionStore,
    factors: SecondFactors,
    keyring: Keyring,
    sites: Sites,
    games: Games,
    life_s: int,
) -> Blueprint:
    routes = Blueprint("account", __name__, url_prefix="/account")

    @routes.errorhandler(NotSignedIn)
    async def to_sign_in(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    async def here() -> Session:
        session = await visitor.session()
        if session is None:
            raise NotSignedIn
        return session

    async def submitted() -> tuple[Session, dict[str, str]]:
        form = await form_fields()
        session = await here()
        browser.check_csrf(session.secret, form.get("csrf"))
        return session, form

    async def password_confirmed(session: Session, form: dict[str, str]) -> Problem | None:
        """None, or what is wrong."""
        current = form.get("current_password", "")
        try:
            with wire().watched():
                good = await signin.confirm_password(session.user, current, address(), _device_of(session))
        except TryLater as error:
            return Problem(try_later(error), error.status, error.headers)
        return None if good else WRONG_PASSWORD

    async def new_password_hash(session: Session, form: dict[str, str]) -> str | Problem:
        current, new = form.get("current_password", ""), form.get("new_password", "")
        if problem := password_problem(new, form.get("repeat_password", "")):
            return problem
        try:
            with wire().watched():
                hashed = await signin.new_password_hash(session.user, current, new, address(), _device_of(session))
        except TryLater as error:
            return Problem(try_later(error), error.status, error.headers)
        return hashed or WRONG_PASSWORD

    async def show(session: Session, problem: Problem | None = None, **context: Any) -> Response:
        return await page(
            "account.html",
            status=problem.status if problem else 200,
            headers=problem.headers if problem else None,
            problem=problem.text if problem else None,
            page_title=_("Your account"),
            user=session.user,
            csrf=browser.csrf_token(session.secret),
            password_min=PASSWORD_LEAST,
            totp_on=session.user.totp_sealed is not None,
            email_2fa_on=session.user.email_2fa,
            sessions=[_line(line, session) for line in await sessions.list(session.user.user_id)],
            games=[_game(game) for game in await games.list(session.user.user_id)],
            sites=[_site(line) for line in await sites.list(session.user.user_id)],
            **context,
        )

    @routes.get("")
    async def account() -> Response:
        return await show(await here(), notice=DONE.get(request.args.get("done", "")))

    @routes.post("/password")
    async def change_password() -> Response:
        session, form = await submitted()
        hashed = await new_password_hash(session, form)
        if isinstance(hashed, Problem):
            return await show(session, hashed, problem_in="password")
        user = await users.set_password(session.user.user_id, hashed)
        renewed = await sessions.start(user, session.auth, address(), device(), session=session.secret)
        response = see_other("/account?done=password")
        browser.set_cookie(response, SESSION, renewed.secret, life_s)
        return response

    @routes.get("/totp")
    async def totp_form() -> Response:
        session = await here()
        return await show_totp(session, factors.new_totp_secret())

    @routes.post("/totp")
    async def totp() -> Response:
        session, form = await submitted()
        try:
            secret = keyring.open(_setup_purpose(session.user), form.get("setup", ""))
        except (SealError, ValueError):
            return see_other("/account/totp")
        problem = await password_confirmed(session, form)
        if problem is None and not await factors.enrol_totp(session.user, secret, form.get("otp", "").replace(" ", "")):
            problem = Problem(_("That code is not right. Is the clock of your phone right?"))
        if problem:
            return await show_totp(session, secret, problem)
        return see_other("/account?done=totp")

    async def show_totp(session: Session, secret: str, problem: Problem | None = None) -> Response:
        return await page(
            "totp_setup.html",
            status=problem.status if problem else 200,
            headers=problem.headers if problem else None,
            problem=problem.text if problem else None,
            page_title=_("Set up an authenticator app"),
            user=session.user,
            csrf=browser.csrf_token(session.secret),
            qr_svg=_qr(factors.totp_uri(session.user, secret)),
            secret=" ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
            setup=keyring.seal(_setup_purpose(session.user), secret),
        )

    async def change_factor(name: str, done: str, change: Change) -> Response:
        session, form = await submitted()
        problem = await password_confirmed(session, form)
        if problem:
            return await show(session, problem, problem_in=name)
        await change(session.user, form)
        return see_other(f"/account?done={done}")

    @routes.post("/totp/remove")
    async def remove_totp() -> Response:
        return await change_factor("totp", "totp-removed", lambda user, _: users.set_totp(user.user_id, None))

    @routes.post("/email-2fa")
    async def email_2fa() -> Response:
        return await change_factor(
            "email_2fa",
            "email-2fa",
            lambda user, form: users.set_email_2fa(user.user_id, form.get("enable") == "1"),
        )

    @routes.post("/sessions/end")
    async def end_session() -> Response:
        session, form = await submitted()
        await sessions.end(session.user.user_id, form.get("id", ""))
        return see_other("/account?done=ended")

    @routes.post("/sessions/end-others")
    async def end_other_sessions() -> Response:
        session, _ = await submitted()
        await users.void_elsewhere(session.user.user_id, session.id)
        return see_other("/account?done=ended-others")

    @routes.post("/games/end")
    async def end_game() -> Response:
        session, form = await submitted()
        await games.end(session.user.user_id, form.get("ids", ""))
        return see_other("/account?done=game-ended")

    @routes.post("/sites/remove")
    async def remove_site() -> Response:
        session, form = await submitted()
        await sites.remove(session.user.user_id, form.get("client_id", ""))
        return see_other("/account?done=site-removed")

    return routes


def password_problem(new: str, repeated: str) -> Problem | None:
    if new != repeated:
        return Problem(_("The two new passwords differ."))
    if len(new) < PASSWORD_LEAST:
        return Problem(_("A password has at least %(count)s characters.", count=PASSWORD_LEAST))
    if len(new) > PASSWORD_MOST:
        return Problem(_("A password has at most %(count)s characters.", count=PASSWORD_MOST))
    return None


def _device_of(session: Session) -> str:
    """A browser that is signed in is a known device."""
    return f"session {session.id}"


def _setup_purpose(user: User) -> str:
    return f"totp setup:{user.user_id}"


def _qr(uri: str) -> str:
    return str(segno.make(uri, error="m").svg_inline(omitsize=True, border=1))


def _line(line: Any, session: Session) -> dict[str, Any]:
    return {
        "id": line.id,
        "current": line.id == session.id,
        "started": _ago(line.created),
        "last_seen": _ago(line.last_seen),
        "address": line.address,
        "device": _device(line.device),
    }


def _game(game: NamedGame) -> dict[str, Any]:
    return {
        "ids": " ".join(game.line.ids),
        "title": game.title or _("Game or app"),
        "address": game.line.address,
        "first_used": _ago(game.line.first_used),
        "last_used": _ago(game.line.last_used),
    }


# What a scope means to the person whose account it is.
KNOWS = {
    "email": _("your e-mail address"),
    "profile": _("your nickname"),
    "trust": _("whether your contact data is verified"),
}


def known(scopes: Sequence[str]) -> list[Text]:
    return [_("that you have an account"), *(KNOWS[scope] for scope in scopes if scope in KNOWS)]


def _site(line: SiteLine) -> dict[str, Any]:
    return {
        "client_id": line.client_id,
        "name": line.name,
        "knows": known(line.scopes),
        "since": _ago(line.since),
        "last_used": _ago(line.last_used) if line.last_used else "",
    }


def _device(device: str) -> str:
    """As it was kept, in English, or in the reader's words."""
    name, on, system = device.partition(" on ")
    return _("%(browser)s on %(system)s", browser=name, system=system) if on else device


def _ago(moment: datetime) -> Text:
    minutes = int((datetime.now(UTC) - moment).total_seconds()) // 60
    if minutes < 1:
        return _("just now")
    if minutes < 60:
        return either("%(count)s minute ago", "%(count)s minutes ago", minutes)
    if minutes < 1440:
        return either("%(count)s hour ago", "%(count)s hours ago", minutes // 60)
    return either("%(count)s day ago", "%(count)s days ago", minutes // 1440)
