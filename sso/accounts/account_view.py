"""The account page: the session it belongs to, the checks of its forms, and its rendering."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from quart import Response

from sso.accounts.errors import InvalidCredentials, SecondFactorBlocked
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login_pages import BLOCKED, WRONG_CODE, retry_message
from sso.accounts.model import User
from sso.accounts.password_login import PasswordLogin
from sso.accounts.ports import ConnectedSite, ConnectedSiteStore
from sso.accounts.sessions import Session, SessionEntry, SessionStore
from sso.accounts.signed_in_games import SignedInGame, SignedInGames
from sso.accounts.visitor import Visitor, browser_label, remember_browser
from sso.core.errors import RetryLater
from sso.core.language import Text, plural
from sso.db.clock import DatabaseClock
from sso.web.client_connection import client_connection
from sso.web.cookies import SESSION_COOKIE, set_cookie
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other
from sso.web.request import client_address

MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 8, 1024


@dataclass(frozen=True)
class FormProblem:
    """Why a form was rejected, as a text for the user."""

    text: str
    status: int = 422
    headers: Mapping[str, str] = field(default_factory=dict)


WRONG_PASSWORD = FormProblem(_("Your current password is incorrect."))


class NotSignedIn(Exception):
    """The browser has no session; it is sent to the login page and then back."""


class AccountView:
    def __init__(
        self,
        visitor: Visitor,
        password_login: PasswordLogin,
        sessions: SessionStore,
        devices: KnownDevices,
        games: SignedInGames,
        sites: ConnectedSiteStore,
        life_s: int,
        clock: DatabaseClock,
    ) -> None:
        self._visitor = visitor
        self._password_login = password_login
        self._sessions = sessions
        self._devices = devices
        self._games = games
        self._sites = sites
        self._life_s = life_s
        self._clock = clock

    async def session(self) -> Session:
        """Returns the session of the browser, or raises NotSignedIn."""
        session = await self._visitor.session()
        if session is None:
            raise NotSignedIn
        return session

    async def submitted_form(self) -> tuple[Session, dict[str, str]]:
        """Returns the session and the fields of a form, after checking its CSRF token."""
        form = await form_fields()
        session = await self.session()
        check_csrf(session.secret, form.get("csrf"))
        return session, form

    async def confirm(self, session: Session, form: dict[str, str]) -> FormProblem | None:
        """Checks the form's password and, if a second factor is on, its code. Returns None if they are correct."""
        user, origin = session.user, (client_address(), _device_of(session))
        try:
            with client_connection().cancel_on_disconnect():
                if not await self._password_login.confirm_password(user, form.get("current_password", ""), *origin):
                    return WRONG_PASSWORD
            if user.second_factors:
                await self._password_login.check_code(user, form.get("present_otp", "").replace(" ", ""), *origin)
        except InvalidCredentials:
            return FormProblem(WRONG_CODE)
        except SecondFactorBlocked as error:
            return FormProblem(BLOCKED, error.status)
        except RetryLater as error:
            return FormProblem(retry_message(error), error.status, error.headers)
        return None

    async def new_password_hash(self, session: Session, form: dict[str, str]) -> str | FormProblem:
        """Checks the form for a new password and returns the new hash, or what is wrong."""
        current, new = form.get("current_password", ""), form.get("new_password", "")
        if problem := password_problem(new, form.get("repeat_password", "")):
            return problem
        origin = client_address(), _device_of(session)
        try:
            with client_connection().cancel_on_disconnect():
                password_hash = await self._password_login.new_password_hash(session.user, current, new, *origin)
        except RetryLater as error:
            return FormProblem(retry_message(error), error.status, error.headers)
        return password_hash or WRONG_PASSWORD

    async def restart_session(self, session: Session, user: User, auth: str, done: str) -> Response:
        """Redirects to the page with a new session for this browser, after everything issued before was revoked."""
        new = await self._sessions.start(user, auth, client_address(), browser_label(), session=session.secret)
        response = see_other(f"/account?done={done}")
        set_cookie(response, SESSION_COOKIE, new.secret, self._life_s)
        remember_browser(response, self._devices, user)
        return response

    async def keep_session(self, done: str) -> Response:
        """Redirects to the page with the current session, after everything else was revoked."""
        response = see_other(f"/account?done={done}")
        remember_browser(response, self._devices, (await self.session()).user)
        return response

    async def show(
        self, session: Session, problem: FormProblem | None = None, opened: str = "", **context: Any
    ) -> Response:
        """``opened`` is the form that the problem or the notice is about: "password", "totp" or "email_2fa"."""
        user = session.user
        now = self._clock.utc()
        return await page(
            "account.html",
            status=problem.status if problem else 200,
            headers=problem.headers if problem else None,
            problem=problem.text if problem else None,
            opened=opened,
            page_title=_("Your account"),
            user=user,
            csrf=csrf_token(session.secret),
            password_min=MIN_PASSWORD_LENGTH,
            totp_on=user.totp_sealed is not None,
            email_2fa_on=user.email_2fa,
            second_factors=user.second_factors,
            sessions=[_session_values(entry, session, now) for entry in await self._sessions.list(user.user_id)],
            games=[_game_values(game, now) for game in await self._games.list(user.user_id)],
            sites=[_site_values(site, now) for site in await self._sites.list(user.user_id)],
            **context,
        )


def password_problem(new: str, repeated: str) -> FormProblem | None:
    if new != repeated:
        return FormProblem(_("The new passwords do not match."))
    if len(new) < MIN_PASSWORD_LENGTH:
        return FormProblem(_("Your password must have at least %(count)s characters.", count=MIN_PASSWORD_LENGTH))
    if len(new) > MAX_PASSWORD_LENGTH:
        return FormProblem(_("Your password must have at most %(count)s characters.", count=MAX_PASSWORD_LENGTH))
    return None


def _device_of(session: Session) -> str:
    """Returns the device name of the session's browser, which is known because it is signed in."""
    return f"session {session.id}"


def _session_values(entry: SessionEntry, current: Session, now: datetime) -> dict[str, Any]:
    return {
        "id": entry.id,
        "current": entry.id == current.id,
        "started": _ago(entry.created, now),
        "last_seen": _ago(entry.last_seen, now),
        "address": entry.address,
        "device": _translated_label(entry.device),
    }


def _game_values(game: SignedInGame, now: datetime) -> dict[str, Any]:
    return {
        "ids": " ".join(game.ids),
        "title": game.title or _("Game or app"),
        "address": game.address,
        "first_used": _ago(game.first_used, now),
        "last_used": _ago(game.last_used, now),
    }


# What a site learns about the user with each scope.
SCOPE_TEXTS = {
    "email": _("your e-mail address"),
    "profile": _("your nickname"),
    "trust": _("whether your contact details are verified"),
}


def describe_scopes(scopes: Sequence[str]) -> list[Text]:
    """Returns what a site with these scopes knows about the user, for the consent page and the account page."""
    return [_("that you have an account"), *(SCOPE_TEXTS[scope] for scope in scopes if scope in SCOPE_TEXTS)]


def _site_values(site: ConnectedSite, now: datetime) -> dict[str, Any]:
    return {
        "client_id": site.client_id,
        "name": site.name,
        "knows": describe_scopes(site.scopes),
        "since": _ago(site.since, now),
        "last_used": _ago(site.last_used, now) if site.last_used else "",
    }


def _translated_label(label: str) -> str:
    """Translates a stored browser label ("Firefox on Linux") to the language of the page."""
    name, on, system = label.partition(" on ")
    return _("%(browser)s on %(system)s", browser=name, system=system) if on else label


def _ago(time: datetime, now: datetime) -> Text:
    minutes = int((now - time).total_seconds()) // 60
    if minutes < 1:
        return _("just now")
    if minutes < 60:
        return plural("%(count)s minute ago", "%(count)s minutes ago", minutes)
    if minutes < 1440:
        return plural("%(count)s hour ago", "%(count)s hours ago", minutes // 60)
    return plural("%(count)s day ago", "%(count)s days ago", minutes // 1440)
