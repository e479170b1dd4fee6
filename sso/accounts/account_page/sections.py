"""The sections of the account page that list what a user is signed in to: browsers, games and sites.

Each section adds its values to the template; ``templates/account`` has one file for each.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sso.accounts.history.texts import PageMoment, format_time
from sso.accounts.model import SessionEntry
from sso.accounts.ports import ConnectedSite, ConnectedSiteStore
from sso.accounts.session_store import Session, SessionStore
from sso.accounts.signed_in_game_store import SignedInGame, SignedInGames
from sso.core.language import Text, plural
from sso.web.language import _


class AccountSection(Protocol):
    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        """Returns the template values of this section for the user of the session."""


class SignedInSections:
    def __init__(self, sessions: SessionStore, games: SignedInGames, sites: ConnectedSiteStore) -> None:
        self._sessions = sessions
        self._games = games
        self._sites = sites

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        user_id = session.user.user_id
        return {
            "sessions": [_session_values(entry, session, now) for entry in await self._sessions.list(user_id)],
            "games": [_game_values(game, now) for game in await self._games.list(user_id)],
            "sites": [_site_values(site, now) for site in await self._sites.list(user_id)],
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


def _session_values(entry: SessionEntry, current: Session, now: datetime) -> dict[str, Any]:
    return {
        "id": entry.id,
        "current": entry.id == current.id,
        # To the minute, to distinguish sessions of one browser.
        "started": PageMoment.of(entry.created, format_time(entry.created)),
        "last_seen": time_ago(entry.last_seen, now),
        "address": entry.address,
        "device": _translated_label(entry.device),
    }


def _game_values(game: SignedInGame, now: datetime) -> dict[str, Any]:
    return {
        "ids": " ".join(game.ids),
        "title": game.title or _("Game or app"),
        "address": game.address,
        "first_used": time_ago(game.first_used, now),
        "last_used": time_ago(game.last_used, now),
    }


def _site_values(site: ConnectedSite, now: datetime) -> dict[str, Any]:
    return {
        "client_id": site.client_id,
        "name": site.name,
        "logo": site.logo,
        "knows": describe_scopes(site.scopes),
        "since": time_ago(site.since, now),
        "last_used": time_ago(site.last_used, now) if site.last_used else "",
    }


def _translated_label(label: str) -> str:
    """Translates a stored browser label ("Firefox on Linux") to the language of the page."""
    name, on, system = label.partition(" on ")
    return _("%(browser)s on %(system)s", browser=name, system=system) if on else label


def time_ago(time: datetime, now: datetime) -> PageMoment:
    return PageMoment.of(time, _age((now - time).total_seconds()))


def _age(seconds: float) -> Text:
    minutes = int(seconds) // 60
    if minutes < 1:
        return _("just now")
    if minutes < 60:
        return plural("%(count)s minute ago", "%(count)s minutes ago", minutes)
    if minutes < 1440:
        return plural("%(count)s hour ago", "%(count)s hours ago", minutes // 60)
    return plural("%(count)s day ago", "%(count)s days ago", minutes // 1440)
