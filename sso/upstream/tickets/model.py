"""A ticket of a store, the store account that it proves, and the interface of each kind of store."""

from typing import Protocol, TypeAlias

from msgspec import Struct

from sso.core.field_errors import FieldError
from sso.upstream.errors import InvalidAnswer
from sso.upstream.model import IdentityProvider
from sso.web.body import JSON

Ticket: TypeAlias = str | dict[str, JSON]
DAY_S = 86400


class StoreAccount(Struct, frozen=True):
    """The player at the store, who is proved by a ticket.

    ``ticket_id`` is the same for all spellings of the ticket, so that a replay is recognized. ``life_s`` is the time
    for which it must be remembered: afterwards, the store or the age limit refuses the ticket.
    """

    subject: str
    name: str  # "" if the store does not tell one
    ticket_id: str
    life_s: int


class TicketRefused(InvalidAnswer):
    """The ticket is wrong. Any other UpstreamError means that the store, or the record of the provider, fails."""


class StoreVerifier(Protocol):
    """One kind of store."""

    async def verify(self, provider: IdentityProvider, secret: str | None, ticket: Ticket) -> StoreAccount:
        """Raises TicketRefused, UpstreamError, or FieldError if the ticket does not have the form of this kind."""


def text_of(ticket: Ticket, max_length: int) -> str:
    if not isinstance(ticket, str) or not 0 < len(ticket) <= max_length:
        raise FieldError(("ticket",), f"expected a string of 1 to {max_length} characters")
    return ticket


def member_of(ticket: dict[str, JSON], name: str, max_length: int) -> str:
    value = ticket.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= max_length:
        raise FieldError(("ticket", name), f"expected a string of 1 to {max_length} characters")
    return value
