"""Creates the objects of this package and connects them."""

from msgspec import Struct

from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.second_factor.requirement import UsedFactorRequirement
from sso.accounts.session_tokens import SessionTokens
from sso.accounts.signed_in_game_store import SignedInGames
from sso.config import Settings
from sso.db.database import Database
from sso.gsid.wiring import GameLogin
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.erasure import AccountErasure
from sso.players.device_key_store import DeviceKeyStore
from sso.players.guest_expiry import GuestExpiry
from sso.players.guest_linking import GuestLinking
from sso.players.guests import GuestSignIn, NewGuestLimit
from sso.players.links import UserLinks
from sso.players.merge import UserMerges
from sso.players.merge_mails import MergeMails
from sso.upstream.wiring import Upstream

__all__ = ["GuestLinking", "MergeMails", "Players", "UserMerges", "build_players"]


class Players(Struct, frozen=True):
    accepts_guests: bool
    applications: ApplicationDirectory
    guests: GuestSignIn
    expiry: GuestExpiry
    merges: UserMerges
    merge_mails: MergeMails
    links: UserLinks


def build_players(
    settings: Settings,
    database: Database,
    tokens: SessionTokens,
    authentication_data: AuthenticationDataIssuer,
    requirement: UsedFactorRequirement,
    game_login: GameLogin,
    games: SignedInGames,
    deletion: AccountDeletion,
    erasure: AccountErasure,
    merges: UserMerges,
    merge_mails: MergeMails,
    upstream: Upstream,
) -> Players:
    guests = GuestSignIn(
        store=DeviceKeyStore(database, settings.appeal_url or ""),
        tokens=tokens,
        authentication_data=authentication_data,
        applications=game_login.applications,
        requirement=requirement,
        limit=NewGuestLimit(database, settings.rate_guest),
        refusals=game_login.violations,
        clock=database.clock,
        end_sign_in=games.end,
        appeal_url=settings.appeal_url or "",
    )
    links = UserLinks(database, upstream.links, games)
    expiry = GuestExpiry(database, deletion, erasure, settings.guest_days)
    return Players(settings.guests == "on", game_login.applications, guests, expiry, merges, merge_mails, links)
