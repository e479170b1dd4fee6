"""FastAPI: dependencies that give the player of a request, and require a rule.

::

    players = FastApiPlayers(AsyncPlayerVerifier(url), AsyncSsoClient(url, ServiceClient(client_id, secret)), 10)

    @app.get("/inventory")
    async def inventory(player: Annotated[VerifiedPlayer, Depends(players.signed_in)]): ...

    @app.post("/kick")
    async def kick(player: Annotated[VerifiedPlayer, Depends(players.may("chat.kick"))]): ...
"""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import HTTPException, Request

from sso.client.player_guard import AsyncPlayerGuard, PlayerDenied

Dependency = Callable[[Request], Awaitable[Any]]


class FastApiPlayers(AsyncPlayerGuard):
    async def signed_in(self, request: Request) -> Any:
        """The dependency that gives the player."""
        try:
            return await self.player(request.headers)
        except PlayerDenied as denied:
            raise HTTPException(denied.status, denied.text, denied.headers) from None

    def may(self, rule: str) -> Dependency:
        """Returns the dependency that gives the player if the player has the rule."""

        async def with_rule(request: Request) -> Any:
            try:
                return await self.player_with(request.headers, rule)
            except PlayerDenied as denied:
                raise HTTPException(denied.status, denied.text, denied.headers) from None

        return with_rule
