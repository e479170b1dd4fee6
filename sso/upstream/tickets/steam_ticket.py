"""Tickets of ``GetAuthTicketForWebApi``, which Steam verifies (ISteamUserAuth/AuthenticateUserTicket)."""

import re
from typing import Any

from sso.core.field_errors import FieldError
from sso.upstream.errors import InvalidAnswer, ProviderUnavailable
from sso.upstream.http_client import ProviderAnswer, ProviderClient
from sso.upstream.model import IdentityProvider
from sso.upstream.tickets.model import DAY_S, StoreAccount, Ticket, TicketRefused, text_of

PATH = "/ISteamUserAuth/AuthenticateUserTicket/v1/"
MAX_TICKET = 8192  # hexadecimal digits; Steam's own tickets have at most 2,560 bytes
_HEX = re.compile(r"(?:[0-9a-f]{2})+", re.ASCII)
_STEAM_ID = re.compile(r"[0-9]{17}", re.ASCII)


class SteamTickets:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def verify(self, provider: IdentityProvider, secret: str | None, ticket: Ticket) -> StoreAccount:
        digits = text_of(ticket, MAX_TICKET).lower()
        if not _HEX.fullmatch(digits):
            raise FieldError(("ticket",), "expected the ticket in hexadecimal digits")
        steam_id = read_answer(await self.ask(provider, secret, digits))
        # Steam does not document how long a ticket is valid.
        return StoreAccount(steam_id, "", digits, 30 * DAY_S)

    async def ask(self, provider: IdentityProvider, secret: str | None, digits: str) -> ProviderAnswer:
        query = {"key": secret or "", "appid": provider.client_id, "ticket": digits}
        if provider.ticket_identity:
            query["identity"] = provider.ticket_identity
        answer = await self._client.get(f"{provider.issuer}{PATH}", query=query)
        if answer.status in (401, 403):
            raise ProviderUnavailable(f"{answer.url}: does not accept the Web API key, status {answer.status}")
        return answer


def read_answer(answer: ProviderAnswer) -> str:
    """Returns the SteamID. Steam answers with ``params`` if the ticket is valid, and with ``error`` otherwise."""
    if answer.status == 400:
        raise TicketRefused(f"{answer.url}: status 400")
    response = answer.json().get("response")
    if answer.status != 200 or not isinstance(response, dict):
        raise InvalidAnswer(f"{answer.url}: expected a response, status {answer.status}")
    if "error" in response:
        raise TicketRefused(f"{answer.url}: {_error_text(response['error'])}")
    params = response.get("params")
    steam_id = params.get("steamid") if isinstance(params, dict) else None
    if not isinstance(params, dict) or params.get("result") != "OK" or not isinstance(steam_id, str):
        raise InvalidAnswer(f"{answer.url}: expected params with the result OK")
    if not _STEAM_ID.fullmatch(steam_id):
        raise InvalidAnswer(f"{answer.url}: expected a SteamID")
    if params.get("publisherbanned") is True:
        raise TicketRefused(f"{answer.url}: the publisher has banned the player at Steam")
    return steam_id


def _error_text(error: Any) -> str:
    code = error.get("errorcode") if isinstance(error, dict) else None
    return f"error {code}" if isinstance(code, int) else "error"
