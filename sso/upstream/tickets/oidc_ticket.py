"""ID tokens that a game has got from its store (Epic, Xbox, PlayStation, Apple, GOG), checked by the issuer's keys."""

from sso.core.field_errors import FieldError
from sso.core.jwt import MAX_TOKEN, SKEW_S
from sso.db.clock import DatabaseClock
from sso.upstream.discovery import Discovery
from sso.upstream.http_client import ProviderClient
from sso.upstream.id_token_verifier import IdTokenVerifier
from sso.upstream.id_tokens import InvalidIdToken, verify_id_token
from sso.upstream.model import MAX_NAME, IdentityProvider, clean_text
from sso.upstream.tickets.model import StoreAccount, Ticket, TicketRefused, member_of, text_of

MAX_NONCE = 256


class OidcTickets:
    def __init__(self, client: ProviderClient, clock: DatabaseClock) -> None:
        self._discovery = Discovery(client)
        self._clock = clock

    async def verify(self, provider: IdentityProvider, secret: str | None, ticket: Ticket) -> StoreAccount:
        token, nonce = parse_ticket(ticket)
        jwks_uri = provider.jwks_uri or (await self._discovery.metadata(provider.issuer)).jwks_uri
        verifier = IdTokenVerifier(provider.issuer, provider.client_id, provider.max_age)
        now = self._clock.now()
        try:
            claims = await verify_id_token(self._discovery, jwks_uri, verifier, token, nonce, now)
        except InvalidIdToken as error:
            raise TicketRefused(error.reason) from None
        name = clean_text(claims.get("name") or claims.get("preferred_username"), MAX_NAME)
        # A signature may be spelled in several ways; what is signed cannot.
        ticket_id = token.rpartition(".")[0]
        return StoreAccount(claims["sub"], name, ticket_id, provider.max_age + 2 * SKEW_S)


def parse_ticket(ticket: Ticket) -> tuple[str, str | None]:
    """Returns the ID token and the nonce, if the game has sent the one that it has requested the token with."""
    if isinstance(ticket, str):
        return text_of(ticket, MAX_TOKEN), None
    if not ticket.keys() <= {"id_token", "nonce"}:
        raise FieldError(("ticket",), "expected an ID token, or an object with id_token and nonce")
    nonce = member_of(ticket, "nonce", MAX_NONCE) if "nonce" in ticket else None
    return member_of(ticket, "id_token", MAX_TOKEN), nonce
