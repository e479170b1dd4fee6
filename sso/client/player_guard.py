"""The player of a request, for the helpers of web frameworks: verified offline, and asked for rules at the service."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sso.client.errors import ClientError, PlayerRefused

PREFIX = "bearer "
RETRY_AFTER_S = 5


@dataclass(frozen=True)
class VerifiedPlayer:
    """A player whose JWT was verified."""

    user_id: str
    auth: str  # how the player has signed in: login, otp, token, gsid, guest …
    nick: str
    claims: dict[str, Any]


class RequestHeaders(Protocol):
    """The headers of a request, whatever the framework; names are found in any case."""

    def get(self, name: str, /) -> str | None: ...


class VerifiesPlayers(Protocol):
    """``PlayerVerifier``."""

    def verify(self, jwt: str, factor: str | None = None) -> VerifiedPlayer: ...


class AsyncVerifiesPlayers(Protocol):
    async def verify(self, jwt: str, factor: str | None = None) -> VerifiedPlayer: ...


class RuleChecks(Protocol):
    """What answers questions about rules: ``SsoClient`` with the credentials of a service client."""

    def check(self, questions: Sequence[tuple[str, int, str]]) -> list[bool]: ...


class AsyncRuleChecks(Protocol):
    async def check(self, questions: Sequence[tuple[str, int, str]]) -> list[bool]: ...


class PlayerDenied(Exception):
    """The request is not answered: 401 without a valid JWT, 403 without the rule, 503 while that cannot be known."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text

    @property
    def headers(self) -> dict[str, str]:
        return {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": str(RETRY_AFTER_S)}}.get(self.status, {})


def has_jwt(headers: RequestHeaders) -> bool:
    """Returns whether the request has a JWT, valid or not: other kinds of Authorization have none."""
    return (headers.get("Authorization") or "")[: len(PREFIX)].lower() == PREFIX


def read_jwt(headers: RequestHeaders, *, require_factor: bool) -> tuple[str, str | None]:
    """Returns the JWT of a request, and its factor if it is required. Raises PlayerDenied.

    A factor that is not required is not read: who has stolen a JWT would leave it out.
    """
    if not has_jwt(headers):
        raise PlayerDenied(401, "the user JWT of a player is required: Authorization: Bearer …")
    jwt = (headers.get("Authorization") or "")[len(PREFIX) :]
    return jwt, (headers.get("Factor") or "") if require_factor else None


def refused_player(error: PlayerRefused) -> PlayerDenied:
    return PlayerDenied(503 if error.reason == "unavailable" else 401, f"{error.reason}: {error}")


class PlayerGuard:
    """``application_id`` is the application whose rules are asked for.

    With ``require_factor`` a request needs the factor of the player's device, as header ``Factor``.
    """

    def __init__(
        self,
        verifier: VerifiesPlayers,
        checks: RuleChecks | None = None,
        application_id: int = 0,
        *,
        require_factor: bool = False,
    ) -> None:
        self._verifier, self._checks, self._application_id = verifier, checks, application_id
        self._require_factor = require_factor

    def player(self, headers: RequestHeaders) -> VerifiedPlayer:
        """Raises PlayerDenied."""
        try:
            return self._verifier.verify(*read_jwt(headers, require_factor=self._require_factor))
        except PlayerRefused as error:
            raise refused_player(error) from None

    def player_with(self, headers: RequestHeaders, rule: str) -> VerifiedPlayer:
        """Returns the player if the player has the rule. Raises PlayerDenied."""
        player = self.player(headers)
        assert self._checks is not None, "the helper needs a client that checks rules"
        try:
            [is_allowed] = self._checks.check([(player.user_id, self._application_id, rule)])
        except ClientError as error:
            raise PlayerDenied(503, str(error)) from error
        return _allowed(player, rule, is_allowed)


class AsyncPlayerGuard:
    """The same for asyncio and Trio."""

    def __init__(
        self,
        verifier: AsyncVerifiesPlayers,
        checks: AsyncRuleChecks | None = None,
        application_id: int = 0,
        *,
        require_factor: bool = False,
    ) -> None:
        self._verifier, self._checks, self._application_id = verifier, checks, application_id
        self._require_factor = require_factor

    async def player(self, headers: RequestHeaders) -> VerifiedPlayer:
        """Raises PlayerDenied."""
        try:
            return await self._verifier.verify(*read_jwt(headers, require_factor=self._require_factor))
        except PlayerRefused as error:
            raise refused_player(error) from None

    async def player_with(self, headers: RequestHeaders, rule: str) -> VerifiedPlayer:
        """Returns the player if the player has the rule. Raises PlayerDenied."""
        player = await self.player(headers)
        assert self._checks is not None, "the helper needs a client that checks rules"
        try:
            [is_allowed] = await self._checks.check([(player.user_id, self._application_id, rule)])
        except ClientError as error:
            raise PlayerDenied(503, str(error)) from error
        return _allowed(player, rule, is_allowed)


def _allowed(player: VerifiedPlayer, rule: str, is_allowed: bool) -> VerifiedPlayer:
    if not is_allowed:
        raise PlayerDenied(403, f"the player lacks the rule {rule}")
    return player
