"""A grant type whose token request may be held until the user has decided. The package ``device`` implements it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.tokens.dpop import DpopProof


@dataclass(frozen=True)
class HeldAnswer:
    tokens: dict[str, Any] = field(repr=False)
    finish: Callable[[bool], Awaitable[None]]  # called with True after the answer was written, otherwise with False


class HeldGrant(Protocol):
    async def respond(
        self, request: TokenRequest, credentials: ClientCredentials, proof: DpopProof | None = None
    ) -> HeldAnswer: ...
