"""Forms of the account page for the export and the deletion of the account, and the page that keeps a closed one."""

import os
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from itertools import groupby
from typing import IO, Any

import trio
from quart import Blueprint, Response

from sso.accounts.account_page.notices import account_url
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
from sso.personal_data.games.answers import MAX_CHARACTERS
from sso.personal_data.games.exports import GameExport, GameExports
from sso.personal_data.games.model import RequestState
from sso.web.cookies import SESSION_COOKIE, delete_cookie
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import see_other

FILE_NAME = "account-data.json"
ARCHIVE_NAME = "account-data.zip"
WITHOUT_GAMES, ASK_AGAIN = "without", "again"  # values of the field ``games``
EXPORTS, EXPORT_WINDOW_S = 5, 3600  # for one user
PART_BYTES = 256 * 1024  # an archive is read in such parts


class DataSection:
    def __init__(self, deletion: AccountDeletion, exports: GameExports) -> None:
        self._deletion = deletion
        self._exports = exports

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        export = await self._exports.read(session.user.user_id)
        return {"deletion_days": self._deletion.days, "game_export": _shown(export) if export.requests else None}


def personal_data_pages(
    account: AccountView, database: Database, deletion: AccountDeletion, game_exports: GameExports
) -> Blueprint:
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
        """Sends the data of the account, with that of games if they have answered; otherwise asks the games first."""
        session, form = await account.submitted_form()
        if problem := await account.confirm(session, form):
            return await account.show(session, problem, "export")
        user_id, games = session.user.user_id, form.get("games", "")
        if games == WITHOUT_GAMES:
            return await download(session, None)
        game_export = await game_exports.read(user_id)
        if game_export.is_ready and games != ASK_AGAIN:
            return await download(session, game_export)
        started = await game_exports.start(user_id)
        if isinstance(started, int):
            return await account.show(session, retry_problem(TooManyAttempts(started)), "export")
        return see_other(account_url("data-requested")) if started.requests else await download(session, None)

    async def download(session: Session, game_export: GameExport | None) -> Response:
        user_id = session.user.user_id
        if wait_s := await database.transaction(exports.add, user_id):
            return await account.show(session, retry_problem(TooManyAttempts(wait_s)), "export")
        if game_export is None:
            return _file(await export_user(database, user_id), "application/json", FILE_NAME)
        return _archive(await game_exports.archive(user_id, game_export))

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


def _archive(archive: IO[bytes]) -> Response:
    response = _file(_parts(archive), "application/zip", ARCHIVE_NAME)
    response.content_length = archive.seek(0, os.SEEK_END)
    response.timeout = None  # for the whole response: each part has its own
    archive.seek(0)
    return response


async def _parts(archive: IO[bytes]) -> AsyncGenerator[bytes]:
    with archive:
        while part := await trio.to_thread.run_sync(archive.read, PART_BYTES):
            yield part


def _file(content: bytes | AsyncGenerator[bytes], content_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content, content_type=content_type, headers=headers)


def _shown(export: GameExport) -> dict[str, Any]:
    """The games of an export as the account page lists them."""
    games = []
    for _id, group in groupby(export.requests, key=lambda request: request.application_id):
        requests = list(group)
        states = {request.state for request in requests}
        games.append(
            {
                "title": requests[0].application_name or f"{requests[0].application_id}",
                "is_open": any(request.is_open for request in requests),
                "has_failed": RequestState.FAILED in states,
                "characters": [name for request in requests for name in request.characters][:MAX_CHARACTERS],
            }
        )
    return {"is_ready": export.is_ready, "games": games, "until": _last_day(export)}


def _last_day(export: GameExport) -> str:
    return format_day(min(request.expires for request in export.requests if request.expires))
