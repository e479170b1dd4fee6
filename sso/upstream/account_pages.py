"""The section of the account page with the ways to sign in, and its forms, which need a recent login."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from quart import Blueprint, Response

from sso.accounts.account_page.notices import account_url
from sso.accounts.account_page.sections import time_ago
from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.errors import LastWayToSignIn, TooManyAttempts
from sso.accounts.form_problem import FormProblem
from sso.accounts.login.messages import LAST_WAY, retry_problem
from sso.accounts.session_store import Session
from sso.upstream.linked_identities import LinkedIdentities
from sso.upstream.provider_store import ProviderList
from sso.upstream.sign_in import UpstreamSignIn
from sso.upstream.view import UpstreamView
from sso.web.redirects import see_other


class IdentitiesSection:
    """Adds the linked identities, and the providers that can still be linked, to the account page."""

    def __init__(self, links: LinkedIdentities, providers: ProviderList) -> None:
        self._links = links
        self._providers = providers

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        linked = await self._links.list(session.user.user_id)
        return {
            "identities": [
                {
                    "id": identity.id,
                    "provider": identity.provider_name,
                    "name": identity.name,
                    "since": time_ago(identity.created, now),
                    "last_used": time_ago(identity.last_used, now),
                }
                for identity in linked
            ],
            "identity_providers": [
                provider
                for provider in self._providers.buttons
                if provider.provider_id not in {identity.provider_id for identity in linked}
            ],
        }


def identity_pages(
    account: AccountView, view: UpstreamView, sign_in: UpstreamSignIn, links: LinkedIdentities
) -> Blueprint:
    routes = Blueprint("identities", __name__, url_prefix="/account/identities")

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    @routes.post("/link")
    async def link() -> Response:
        session, form = await account.submitted_form()
        if problem := await account.confirm(session, form):
            return await account.show(session, problem, "identities", opened_item=form.get("provider", ""))
        try:
            await view.count_request()
        except TooManyAttempts as error:
            return await account.show(session, retry_problem(error), "identities")
        provider = await sign_in.provider(form.get("provider", ""))
        return await view.redirect_to_provider(provider, "/account", session.user.user_id)

    @routes.post("/unlink")
    async def unlink() -> Response:
        session, form = await account.submitted_form()
        if problem := await account.confirm(session, form):
            return await account.show(session, problem, "identities", opened_item=form.get("id", ""))
        try:
            unlinked = await links.unlink(session.user, form.get("id", ""))
        except LastWayToSignIn:
            return await account.show(session, FormProblem(LAST_WAY, 409), "identities")
        return see_other(account_url("identity-unlinked") if unlinked else "/account")

    return routes
