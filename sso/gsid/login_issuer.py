"""What the client of a confirmed session gets: the authentication data of a game, or the tokens of a device."""

from typing import Any, Protocol

from sso.accounts.authentication_context import by_browser
from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.errors import InvalidCredentials, LoginNotAllowed
from sso.accounts.model import SignedIn
from sso.gsid.model import Claim, Claimed
from sso.telemetry.counters import LOGINS


class LoginIssuer(Protocol):
    async def issue(self, claim: Claim, claimed: Claimed) -> dict[str, Any]:
        """Raises LoginNotAllowed or InvalidCredentials if the user, or the client, may not get it any more.

        What is issued under a claim is void as soon as another claim has replaced it.
        """

    async def revoke(self, claim: Claim) -> None:
        """Revokes what was issued, because the client has not received it. The next claim would do so as well."""


class GameLoginIssuer:
    """Issues the authentication data of a game. Its sign-in has the id of the claim, and the next claim ends it."""

    def __init__(self, authentication_data: AuthenticationDataIssuer) -> None:
        self._authentication_data = authentication_data

    async def issue(self, claim: Claim, claimed: Claimed) -> dict[str, Any]:
        signed_in = SignedIn(claimed.user, by_browser(claimed.auth, claimed.auth_time))
        try:
            data = await self._authentication_data.issue(signed_in, claimed.session.options, sign_in_id=claim.claim_id)
        except (LoginNotAllowed, InvalidCredentials):
            LOGINS.add("game", "not_allowed")
            raise
        LOGINS.add("game", "success")
        session = claimed.session
        if session.linked:
            data["linked"] = session.linked
        if session.linked == "merged":
            data["merged_from"] = session.link_guest
        return data

    async def revoke(self, claim: Claim) -> None:
        """Does nothing: the next claim ends the sign-in of this one."""
