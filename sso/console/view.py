"""The frame of every page of the console: who may open it, the checks of its forms, its rendering and its errors.

The texts of the console are in English only (docs/console_sections.rst).
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal
from urllib.parse import quote, urlencode

from quart import Blueprint, Response, current_app, g, request

from sso.accounts.login.view import ENROL_PATH
from sso.accounts.visitor import Visitor
from sso.admin.own_records import read_own_records
from sso.admin.wiring import ManagementApi
from sso.console.audit.targets import history_path
from sso.console.audit.undo_offer import undo_path, undoable_entry
from sso.console.confirmation import ConfirmationNeeded, ConsoleConfirmation
from sso.console.notices import NEXT_STEPS, NOTICES
from sso.console.record_names import RecordNames
from sso.console.request_limit import ConsoleLimit
from sso.console.sections import BASE, OVERVIEW, ConsoleSection, open_sections
from sso.console.visit import ConsoleOperations, ConsoleVisit
from sso.core.errors import ApiError, Forbidden
from sso.core.language import current_language
from sso.core.language_names import SOURCE
from sso.perm.errors import TooManyAdminRequests
from sso.web.csrf import check_csrf, csrf_token
from sso.web.error_page import error_page
from sso.web.pages import form_fields
from sso.web.redirects import LOCAL_PATH, see_other
from sso.web.request import client_address
from sso.web.security_headers import page_policy

MAX_CONSOLE_FORM = 256 * 1024
PAGE_DEFAULTS: Mapping[str, Any] = {
    "problem": None, "problem_summary": "", "problem_at_field": False, "problem_field": "",
    "notice": None, "undo_path": "", "next_step": None, "navigation": {}, "crumbs": (),
    "values": {}, "names": RecordNames(),
}  # fmt: skip
SHOWN_AT_FIELD = '<p class="wrong"'  # a field of the page that shows the problem (_parts.html)
Crumbs = Sequence[tuple[str, str]]


class NoBrowserSession(Exception):
    """The browser is not signed in, or its user must set up a second factor first."""

    def __init__(self, path: str) -> None:
        self.path = path


class NotAnAdministrator(Exception):
    """The user has no right of the management API, and no project, application or group to manage."""


class SecondFactorNeeded(Exception):
    """The service requires a second factor of administrators, and the user has none or has not signed in with it."""


RecentAuthenticationOf = Literal["always", "by_caller", "never"]  # when the user of a form must have signed in recently


class ConsoleView:
    def __init__(
        self,
        visitor: Visitor,
        management: ManagementApi,
        confirmation: ConsoleConfirmation,
        *,
        requires_second_factor: bool,
    ) -> None:
        self._visitor = visitor
        self._management = management
        self._operations = ConsoleOperations(management)
        self._limit = ConsoleLimit(management.rate, management.export_rate)
        self._confirmation = confirmation
        self._requires_second_factor = requires_second_factor

    def blueprint(self, section: ConsoleSection) -> Blueprint:
        """Returns the blueprint for the pages of a section. Its errors are shown in the frame of the console."""
        routes = Blueprint(f"console_{section.key}", __name__, url_prefix=section.path)
        routes.register_error_handler(NoBrowserSession, self._redirect)
        routes.register_error_handler(NotAnAdministrator, self._show_no_access)
        routes.register_error_handler(SecondFactorNeeded, self._show_second_factor_needed)
        routes.register_error_handler(ConfirmationNeeded, self._show_confirmation)
        routes.register_error_handler(TooManyAdminRequests, self._show_too_many)
        routes.register_error_handler(ApiError, self._show_error)
        return routes

    async def open(self, section: ConsoleSection) -> ConsoleVisit:
        """Returns the visit of an administrator who may use the section. Raises what the handlers above show."""
        session = await self._visitor.session(may_enrol=True)
        current_language.set(SOURCE)
        here = request.full_path.rstrip("?") if request.method == "GET" else section.path
        back = here if LOCAL_PATH.fullmatch(here) else section.path
        if session is None:
            raise NoBrowserSession(f"/login?next={quote(back)}")
        if session.must_enrol:
            raise NoBrowserSession(f"{ENROL_PATH}?next={quote(back)}")
        g.console_session = session
        user_id = session.user.user_id
        read_caller = partial(self._management.authenticator.browser_caller, user_id, client_address())
        is_counted, g.console_counted = g.get("console_counted"), True
        caller = await (read_caller() if is_counted else self._limit.count_while(user_id, read_caller))
        with self._management.limit(caller):
            own = await read_own_records(self._management.visibility, caller, _target())
        if not caller.rights and not own:
            raise NotAnAdministrator
        if self._requires_second_factor and not session.has_second_factor:
            raise SecondFactorNeeded
        visit = ConsoleVisit(session, caller, self._operations, self._confirmation.is_recent(session), own)
        g.console_visit, g.console_section = visit, section
        if not section.is_open_to(caller, own):
            needed = " or ".join(sorted(section.rights))
            raise Forbidden(f"{needed} is required")
        return visit

    async def open_export(self, section: ConsoleSection) -> ConsoleVisit:
        """Like `open`, for a file with many records, of which an administrator may get fewer per minute."""
        visit = await self.open(section)
        await self._limit.count_export(visit.session.user.user_id)
        return visit

    async def submitted(
        self,
        section: ConsoleSection,
        method: str = "",
        path: str = "",
        *,
        recent: RecentAuthenticationOf = "always",
        max_bytes: int = MAX_CONSOLE_FORM,
        files: bool = False,
    ) -> tuple[ConsoleVisit, dict[str, str]]:
        """Returns the visit and the fields of a form, after checking its CSRF token.

        ``method`` and ``path`` name the operation that the form is for; its right is checked before anything is done.
        A change needs recent authentication: if it is missing, the form is sent again with the proof. ``recent`` is
        "never" for a form that changes nothing, only ends something, or changes how a page looks. With "by_caller" the
        fields decide: the visit refuses every change until `require_recent` was called.
        """
        if request.content_length is not None and request.content_length <= MAX_CONSOLE_FORM:
            max_bytes = min(max_bytes, MAX_CONSOLE_FORM)
        if max_bytes > MAX_CONSOLE_FORM:  # read a large body only if the browser is signed in
            (await self.open(section)).require(method, path)
        form = await form_fields(max_bytes, files=files)
        visit = await self.open(section)
        check_csrf(visit.session.secret, form.get("csrf"))
        if path:
            visit.require(method, path)
        if recent == "always":
            await self.require_recent(visit, form)
        visit.question.is_open = recent == "by_caller"
        return visit, form

    async def require_recent(self, visit: ConsoleVisit, form: dict[str, str], *, needed: bool = True) -> None:
        """For forms "by_caller". ``needed``: the fields of this form need it. Raises ConfirmationNeeded."""
        if needed:
            await self._confirmation.require(visit, form)
        visit.question.is_open = False

    async def show(
        self,
        visit: ConsoleVisit,
        template: str,
        *,
        title: str,
        crumbs: Crumbs = (),
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **context: Any,
    ) -> Response:
        """Renders a page of the section that is open. ``crumbs``: path and title of the pages above it.

        ``version`` is that of the stored record. A form that was sent and is shown again keeps its own version: its
        fields were filled in for that one, and a later save must not overwrite what others have changed since.
        """
        if "version" in context:
            context["version"] = g.get("form_fields", {}).get("version", context["version"])
        section: ConsoleSection = g.console_section
        above = [(section.path, section.title)] if crumbs or request.path != section.path else []
        return self._render(
            template,
            status,
            headers,
            {
                "page_title": title,
                "section": section,
                "navigation": open_sections(visit.caller, visit.own),
                "crumbs": [*above, *crumbs],
                "may": visit.may,
                "csrf": csrf_token(visit.session.secret),
                "user": visit.session.user,
                "recommend_2fa": not visit.session.user.second_factors,
                "notice": NOTICES.get(request.args.get("done", "")),
                "undo_path": undo_path(visit, request.args.get("undo", "")),
                "next_step": NEXT_STEPS.get(request.args.get("done", "")),
                **context,
            },
        )

    def _render(
        self, template: str, status: int, headers: Mapping[str, str] | None, names: Mapping[str, Any]
    ) -> Response:
        current_language.set(SOURCE)
        template_names = {**PAGE_DEFAULTS, "status": status, **names}
        page = current_app.jinja_env.get_template(f"console/{template}")
        text = page.render(template_names)
        if template_names["problem"] and SHOWN_AT_FIELD in text:  # say it once, at the field
            text = page.render({**template_names, "problem_at_field": True})
        response = Response(text, status, content_type="text/html; charset=utf-8")
        policy = page_policy(sends_requests=True)
        response.headers.update({"Content-Language": SOURCE, "Content-Security-Policy": policy, **(headers or {})})
        return response

    async def _redirect(self, error: NoBrowserSession) -> Response:
        if request.headers.get("HX-Request"):  # htmx would show the sign-in page in place of a part of this one
            return Response(b"", 401, {"HX-Redirect": error.path}, content_type="text/plain; charset=utf-8")
        return see_other(error.path)

    async def _show_no_access(self, _: NotAnAdministrator) -> Response:
        return self._render("no_access.html", 403, None, self._without_rights("For administrators only"))

    async def _show_second_factor_needed(self, _: SecondFactorNeeded) -> Response:
        title = "Sign in again" if g.console_session.user.second_factors else "Set up a second factor"
        return self._render("second_factor.html", 403, None, self._without_rights(title))

    def _without_rights(self, title: str) -> dict[str, Any]:
        session = g.console_session
        return {"page_title": title, "section": OVERVIEW, "user": session.user, "csrf": csrf_token(session.secret)}

    async def _show_confirmation(self, needed: ConfirmationNeeded) -> Response:
        page = await self._confirmation.page(needed)
        return await self.show(needed.visit, "confirm.html", action=request.full_path.rstrip("?"), **page)

    async def _show_too_many(self, error: TooManyAdminRequests) -> Response:
        """htmx gets the sentence alone, which the page then shows (console.js)."""
        template = "_too_many.html" if request.headers.get("HX-Request") else "too_many.html"
        here = request.full_path.rstrip("?") if request.method == "GET" else ""
        names = {**self._without_rights(ERROR_TITLES[429]), "wait_s": error.retry_after, "here": here}
        return self._render(template, 429, error.headers, names)

    async def _show_error(self, error: ApiError) -> Response:
        visit: ConsoleVisit | None = g.get("console_visit")
        if visit is None:
            return await error_page(error.status, error.message, g.request_id, error.headers)
        return await self.show(
            visit,
            "error.html",
            title=ERROR_TITLES.get(error.status, "That did not work"),
            status=error.status,
            headers=error.headers,
            message=error.message,
            back=g.console_section.path if request.path != g.console_section.path else BASE,
            history=history_path(visit, request.view_args or {}) if error.status == 404 else "",
            notice=None,
        )


ERROR_TITLES = {
    403: "You are not allowed to do that",
    404: "Not found",
    409: "That is not possible now",
    412: "This was changed in the meantime",
    429: "Too many requests",
}


def done(path: str, notice: str) -> Response:
    """Redirects after an action to a page that shows the notice, with a link to undo what the action has changed."""
    assert notice in NOTICES
    names = {"done": notice, "undo": undoable_entry(g.console_visit)}
    return see_other(f"{path}{'&' if '?' in path else '?'}{urlencode({k: v for k, v in names.items() if v})}")


def add_page(routes: Blueprint, method: str, path: str, view: Callable[..., Awaitable[Response]]) -> None:
    """Adds a page that is declared. Its path, below that of the section, is also the name of its route."""
    name = re.sub(r"\W+", "_", f"{method} {path}")
    routes.add_url_rule(path, name, view, methods=[method])


def _target() -> dict[str, str]:
    """Returns the ids of the records that the request is about: of its path, else of its query or form."""
    fields: dict[str, str] = {**request.args, **g.get("form_fields", {})}
    return {**fields, **(request.view_args or {})}
