"""The account page itself: who is there, what a form must prove, and what is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from quart import Response

from sso.accounts.errors import InvalidCredentials, SecondFactorBlocked
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login_pages import BLOCKED, WRONG_CODE, retry_message
from sso.accounts.model import User
from sso.accounts.password_login import PasswordLogin
from sso.accounts.ports import ConnectedSite, ConnectedSiteStore
from sso.accounts.sessions import Session, SessionStore
from sso.accounts.signed_in_games import SignedInGame, SignedInGames
from sso.accounts.visitor import Visitor, browser_label, remember_browser
from sso.core.errors import RetryLater
from sso.core.language import Text, either
from sso.web.client_connection import client_connection
from sso.web.cookies import SESSION_COOKIE, set_cookie
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other
from sso.web.request import client_address

MIN_PASSWORD, MAX_PASSWORD = 8, 1024


@dataclass(frozen=True)
class FormProblem:
    """Why a form was not accepted."""

    text: str
    status: int = 422
    headers: Mapping[str, str] = field(default_factory=dict)


WRONG_PASSWORD = FormProblem(_("Your current password is not right."))


class NotSignedIn(Exception):
    """To the sign-in page and back."""


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
    ) -> None:
        self._visitor = visitor
        self._password_login = password_login
        self._sessions = sessions
        self._devices = devices
        self._games = games
        self._sites = sites
        self._life_s = life_s

    async def session(self) -> Session:
        """Raises NotSignedIn."""
        session = await self._visitor.session()
        if session is None:
            raise NotSignedIn
        return session

    async def submitted_form(self) -> tuple[Session, dict[str, str]]:
        form = await form_fields()
        session = await self.session()
        check_csrf(session.secret, form.get("csrf"))
        return session, form

    async def confirm(self, session: Session, form: dict[str, str]) -> FormProblem | None:
        """Judges the password of the form and, if a second factor is on, its code. Returns what is wrong."""
        user, where = session.user, (client_address(), _device_of(session))
        try:
            with client_connection().cancel_on_disconnect():
                if not await self._password_login.confirm_password(user, form.get("current_password", ""), *where):
                    return WRONG_PASSWORD
            if user.second_factors:
                await self._password_login.check_code(user, form.get("present_otp", "").replace(" ", ""), *where)
        except InvalidCredentials:
            return FormProblem(WRONG_CODE)
        except SecondFactorBlocked as error:
            return FormProblem(BLOCKED, error.status)
        except RetryLater as error:
            return FormProblem(retry_message(error), error.status, error.headers)
        return None

    async def new_password_hash(self, session: Session, form: dict[str, str]) -> str | FormProblem:
        current, new = form.get("current_password", ""), form.get("new_password", "")
        if problem := password_problem(new, form.get("repeat_password", "")):
            return problem
        where = client_address(), _device_of(session)
        try:
            with client_connection().cancel_on_disconnect():
                hashed = await self._password_login.new_password_hash(session.user, current, new, *where)
        except RetryLater as error:
            return FormProblem(retry_message(error), error.status, error.headers)
        return hashed or WRONG_PASSWORD

    async def renewed(self, session: Session, user: User, auth: str, done: str) -> Response:
        """Back to the page, with a new session for this browser: everything issued before has ended."""
        new = await self._sessions.start(user, auth, client_address(), browser_label(), session=session.secret)
        response = see_other(f"/account?done={done}")
        set_cookie(response, SESSION_COOKIE, new.secret, self._life_s)
        remember_browser(response, self._devices, user)
        return response

    async def kept(self, done: str) -> Response:
        """Back to the page, with the session that this browser has: everything else has ended."""
        response = see_other(f"/account?done={done}")
        remember_browser(response, self._devices, (await self.session()).user)
        return response

    async def show(
        self, session: Session, problem: FormProblem | None = None, opened: str = "", **context: Any
    ) -> Response:
        """``opened``: the form that the problem or the notice is about: "password", "totp" or "email_2fa"."""
        user = session.user
        return await page(
            "account.html",
            status=problem.status if problem else 200,
            headers=problem.headers if problem else None,
            problem=problem.text if problem else None,
            opened=opened,
            page_title=_("Your account"),
            user=user,
            csrf=csrf_token(session.secret),
            password_min=MIN_PASSWORD,
            totp_on=user.totp_sealed is not None,
            email_2fa_on=user.email_2fa,
            second_factors=user.second_factors,
            sessions=[_line(line, session) for line in await self._sessions.list(user.user_id)],
            games=[_game(game) for game in await self._games.list(user.user_id)],
            sites=[_site(line) for line in await self._sites.list(user.user_id)],
            **context,
        )


def password_problem(new: str, repeated: str) -> FormProblem | None:
    if new != repeated:
        return FormProblem(_("The two new passwords differ."))
    if len(new) < MIN_PASSWORD:
        return FormProblem(_("A password has at least %(count)s characters.", count=MIN_PASSWORD))
    if len(new) > MAX_PASSWORD:
        return FormProblem(_("A password has at most %(count)s characters.", count=MAX_PASSWORD))
    return None


def _device_of(session: Session) -> str:
    """A browser that is signed in is a known device."""
    return f"session {session.id}"


def _line(line: Any, session: Session) -> dict[str, Any]:
    return {
        "id": line.id,
        "current": line.id == session.id,
        "started": _ago(line.created),
        "last_seen": _ago(line.last_seen),
        "address": line.address,
        "device": _device(line.device),
    }


def _game(game: SignedInGame) -> dict[str, Any]:
    return {
        "ids": " ".join(game.ids),
        "title": game.title or _("Game or app"),
        "address": game.address,
        "first_used": _ago(game.first_used),
        "last_used": _ago(game.last_used),
    }


# What a scope means to the person whose account it is.
SCOPE_TEXTS = {
    "email": _("your e-mail address"),
    "profile": _("your nickname"),
    "trust": _("whether your contact data is verified"),
}


def describe_scopes(scopes: Sequence[str]) -> list[Text]:
    return [_("that you have an account"), *(SCOPE_TEXTS[scope] for scope in scopes if scope in SCOPE_TEXTS)]


def _site(line: ConnectedSite) -> dict[str, Any]:
    return {
        "client_id": line.client_id,
        "name": line.name,
        "knows": describe_scopes(line.scopes),
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
