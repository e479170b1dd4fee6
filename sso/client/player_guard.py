"""The player of a request, for the helpers of web frameworks: verified offline, and asked for rules at the service."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from sso.client.errors import ClientError, PlayerRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sso.verification.claims import VerifiedPlayer
    from sso.verification.verifier import AsyncVerifier, Verifier

PREFIX = "bearer "
RETRY_AFTER_S = 5


class Checks(Protocol):
    """What answers questions about rules: ``SsoClient`` with the credentials of a service client."""

    def check(self, questions: "Sequence[tuple[str, int, str]]") -> list[bool]: ...


class AsyncChecks(Protocol):
    async def check(self, questions: "Sequence[tuple[str, int, str]]") -> list[bool]: ...


class Denied(Exception):
    """The request is not answered: 401 without a valid JWT, 403 without the rule, 503 while that cannot be known."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text

    @property
    def headers(self) -> dict[str, str]:
        return {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": str(RETRY_AFTER_S)}}.get(self.status, {})


def read_jwt(headers: Mapping[str, str]) -> tuple[str, str | None]:
    """Returns the JWT of a request and its factor, if the game sends one. Raises Denied."""
    authorization = headers.get("Authorization", "")
    if authorization[: len(PREFIX)].lower() != PREFIX:
        raise Denied(401, "the user JWT of a player is required: Authorization: Bearer …")
    return authorization[len(PREFIX) :], headers.get("Factor")


def refused_player(error: PlayerRefused) -> Denied:
    return Denied(503 if error.reason == "unavailable" else 401, f"{error.reason}: {error}")


class PlayerGuard:
    """``application_id`` is the application whose rules are asked for."""

    def __init__(self, verifier: "Verifier", checks: Checks | None = None, application_id: int = 0) -> None:
        self._verifier, self._checks, self._application_id = verifier, checks, application_id

    def player(self, headers: Mapping[str, str]) -> "VerifiedPlayer":
        """Raises Denied."""
        try:
            return self._verifier.verify(*read_jwt(headers))
        except PlayerRefused as error:
            raise refused_player(error) from None

    def player_with(self, headers: Mapping[str, str], rule: str) -> "VerifiedPlayer":
        """Returns the player if the player has the rule. Raises Denied."""
        player = self.player(headers)
        assert self._checks is not None, "the helper needs a client that checks rules"
        try:
            [is_allowed] = self._checks.check([(player.user_id, self._application_id, rule)])
        except ClientError as error:
            raise Denied(503, str(error)) from error
        return _allowed(player, rule, is_allowed)


class AsyncPlayerGuard:
    """The same for asyncio and Trio."""

    def __init__(self, verifier: "AsyncVerifier", checks: AsyncChecks | None = None, application_id: int = 0) -> None:
        self._verifier, self._checks, self._application_id = verifier, checks, application_id

    async def player(self, headers: Mapping[str, str]) -> "VerifiedPlayer":
        """Raises Denied."""
        try:
            return await self._verifier.verify(*read_jwt(headers))
        except PlayerRefused as error:
            raise refused_player(error) from None

    async def player_with(self, headers: Mapping[str, str], rule: str) -> "VerifiedPlayer":
        """Returns the player if the player has the rule. Raises Denied."""
        player = await self.player(headers)
        assert self._checks is not None, "the helper needs a client that checks rules"
        try:
            [is_allowed] = await self._checks.check([(player.user_id, self._application_id, rule)])
        except ClientError as error:
            raise Denied(503, str(error)) from error
        return _allowed(player, rule, is_allowed)


def _allowed(player: "VerifiedPlayer", rule: str, is_allowed: bool) -> "VerifiedPlayer":
    if not is_allowed:
        raise Denied(403, f"the player lacks the rule {rule}")
    return player
