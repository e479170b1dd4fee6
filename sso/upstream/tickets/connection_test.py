"""Tests whether a store can be asked about tickets, with a ticket that no store has issued."""

from collections.abc import AsyncGenerator

from sso.core.certificates import load_certificates
from sso.upstream.authorization_code import TokenRefused, request_tokens
from sso.upstream.connection_step import ConnectionStep, keys_step
from sso.upstream.discovery import Discovery
from sso.upstream.errors import ProviderUnavailable, UpstreamError
from sso.upstream.http_client import ProviderClient
from sso.upstream.model import IdentityProvider
from sso.upstream.tickets.google_play import code_form
from sso.upstream.tickets.model import TicketRefused
from sso.upstream.tickets.steam_ticket import SteamTickets, read_answer

NO_TICKET = "14000000"  # hexadecimal digits, and a code
REFUSED = "answers: it refuses the ticket of the test"
NO_KEYS = "nothing to ask: each ticket names the address of its key"


async def store_steps(
    client: ProviderClient, provider: IdentityProvider, secret: str | None
) -> AsyncGenerator[ConnectionStep]:
    match provider.kind:
        case "steam_ticket":
            yield await _test_steam(client, provider, secret)
        case "google_play":
            yield await _test_google(client, provider, secret)
        case "game_center":
            yield ConnectionStep("Address", True, NO_KEYS)
            trusted = load_certificates(provider.certificates) if provider.certificates else []
            yield ConnectionStep("Trusted certificates", True, f"{len(trusted)} stored")
        case "oidc_ticket":
            try:
                jwks_uri = provider.jwks_uri or (await Discovery(client).metadata(provider.issuer)).jwks_uri
            except UpstreamError as error:
                yield ConnectionStep("Discovery document", False, error.reason, "issuer")
                return
            yield await keys_step(client, jwks_uri, "jwks_uri")


async def _test_steam(client: ProviderClient, provider: IdentityProvider, secret: str | None) -> ConnectionStep:
    title = "Web API"
    try:
        read_answer(await SteamTickets(client).ask(provider, secret, NO_TICKET))
    except TicketRefused:
        return ConnectionStep(title, True, REFUSED)
    except ProviderUnavailable as error:
        return ConnectionStep(title, False, error.reason, "client_secret")
    except UpstreamError as error:
        return ConnectionStep(title, False, error.reason, "issuer")
    return ConnectionStep(title, False, "has accepted a ticket that does not exist", "issuer")


async def _test_google(client: ProviderClient, provider: IdentityProvider, secret: str | None) -> ConnectionStep:
    title = "Token endpoint"
    try:
        await request_tokens(client, provider.token_url, code_form(provider, secret, NO_TICKET), {})
    except TokenRefused as refused:
        if refused.error == "invalid_grant":
            return ConnectionStep(title, True, REFUSED)
        return ConnectionStep(title, False, refused.reason, "client_secret")
    except UpstreamError as error:
        return ConnectionStep(title, False, error.reason, "token_url")
    return ConnectionStep(title, False, "has accepted a code that does not exist", "token_url")
