"""The section of the account page with the devices whose keys sign the player in, and the form that removes one."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from quart import Blueprint, Response

from sso.accounts.account_page.notices import account_url
from sso.accounts.account_page.sections import time_ago
from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.form_problem import FormProblem
from sso.accounts.login.messages import LAST_WAY
from sso.accounts.session_store import Session
from sso.core.errors import Conflict
from sso.players.links import UserLinks
from sso.web.redirects import see_other


class DeviceKeySection:
    def __init__(self, links: UserLinks) -> None:
        self._links = links

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        return {
            "device_keys": [
                {"id": key.id, "since": time_ago(key.created, now), "last_used": time_ago(key.last_used, now)}
                for key in await self._links.keys(session.user.user_id)
            ]
        }


def device_key_pages(account: AccountView, links: UserLinks) -> Blueprint:
    routes = Blueprint("device_keys", __name__, url_prefix="/account/keys")

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    @routes.post("/remove")
    async def remove() -> Response:
        session, form = await account.submitted_form()
        if problem := await account.confirm(session, form):
            return await account.show(session, problem, "identities", opened_item=form.get("id", ""))
        try:
            removed = await links.remove(session.user, form.get("id", ""))
        except Conflict:
            return await account.show(session, FormProblem(LAST_WAY, 409), "identities")
        return see_other(account_url("device-key-removed") if removed else "/account")

    return routes
