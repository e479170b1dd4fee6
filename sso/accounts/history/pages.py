"""The security history: its newest events on the account page, and all of them on a page of its own."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from quart import Blueprint, Response, request

from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.history.store import MAX_ID, PAGE, AccountHistory
from sso.accounts.history.texts import event_values
from sso.accounts.session_store import Session
from sso.web.csrf import csrf_token
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import see_other

NEWEST = 5  # events on the account page


class HistorySection:
    def __init__(self, history: AccountHistory) -> None:
        self._history = history

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        events = await self._history.list(session.user.user_id, NEWEST)
        return {"events": [event_values(event) for event in events], "history_days": self._history.days}


def history_pages(account: AccountView, history: AccountHistory) -> Blueprint:
    routes = Blueprint("history", __name__, url_prefix="/account")

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account/history")

    @routes.get("/history")
    async def show_history() -> Response:
        session = await account.session()
        before = _page_start(request.args.get("before", ""))
        events = await history.list(session.user.user_id, PAGE + 1, before)
        return await page(
            "account_history.html",
            page_title=_("Security history"),
            user=session.user,
            csrf=csrf_token(session.secret),
            events=[event_values(event) for event in events[:PAGE]],
            older=events[PAGE - 1].id if len(events) > PAGE else None,
            is_first=before == MAX_ID,
            history_days=history.days,
        )

    return routes


def _page_start(text: str) -> int:
    """Returns the id in the query; a page with an invalid one shows the newest events."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else MAX_ID
