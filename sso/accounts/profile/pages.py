"""The form of the account page that changes the profile."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from quart import Blueprint, Response

from sso.accounts.account_page.notices import account_url
from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.form_problem import FormProblem
from sso.accounts.profile.choices import countries, languages
from sso.accounts.profile.store import InvalidProfile, ProfileStore, chosen_language, parse_profile
from sso.accounts.session_store import Session
from sso.core.language import current_language
from sso.core.language_names import LANGUAGES
from sso.web.language import remember_choice
from sso.web.redirects import see_other


class ProfileSection:
    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        user = session.user
        known = countries(current_language.get())
        other = [] if user.country in {"", *(code for code, _ in known)} else [(user.country, user.country)]
        return {
            "languages": languages(),
            "countries": [*other, *known],
            "profile": {"nick": user.nick, "lang": chosen_language(user), "country": user.country},
        }


def profile_pages(account: AccountView, profiles: ProfileStore) -> Blueprint:
    routes = Blueprint("profile", __name__, url_prefix="/account")

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    @routes.post("/profile")
    async def save_profile() -> Response:
        session, form = await account.submitted_form()
        try:
            profile = parse_profile(session.user, form)
        except InvalidProfile as error:
            entered = {name: form.get(name, "") for name in ("nick", "lang", "country")}
            problem = FormProblem(error.text, field=error.field)
            return await account.show(session, problem, "profile", entered=entered)
        await profiles.save(session.user.user_id, profile)
        response = see_other(account_url("profile"))
        if profile.lang in LANGUAGES and profile.lang != session.user.lang:
            remember_choice(response, profile.lang)  # the page must not stay in a language chosen before
        return response

    return routes
