"""Server auth codes of Google Play Games: the code is exchanged for a token, and the token tells the player."""

from sso.upstream.authorization_code import MAX_CODE, TokenRefused, request_tokens
from sso.upstream.errors import InvalidAnswer, ProviderUnavailable
from sso.upstream.http_client import ProviderClient
from sso.upstream.model import MAX_NAME, MAX_SUBJECT, IdentityProvider, clean_text
from sso.upstream.tickets.model import DAY_S, StoreAccount, Ticket, TicketRefused, text_of


class GooglePlay:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def verify(self, provider: IdentityProvider, secret: str | None, ticket: Ticket) -> StoreAccount:
        code = text_of(ticket, MAX_CODE)
        try:
            form = code_form(provider, secret, code)
            tokens = await request_tokens(self._client, provider.token_url, form, {})
        except TokenRefused as refused:
            if refused.error == "invalid_grant":
                raise TicketRefused(refused.reason) from None
            raise ProviderUnavailable(refused.reason) from None
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        answer = await self._client.get(provider.userinfo_url, headers)
        if answer.status != 200:
            raise ProviderUnavailable(f"{answer.url}: status {answer.status}")
        player = answer.json()
        subject = player.get("playerId")
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable():
            raise InvalidAnswer(f"{answer.url}: expected a playerId")
        # Google accepts a code once; that it is remembered here as well does not depend on Google.
        return StoreAccount(subject, clean_text(player.get("displayName"), MAX_NAME), code, DAY_S)


def code_form(provider: IdentityProvider, secret: str | None, code: str) -> dict[str, str]:
    """Returns the request that exchanges a code. Google refuses one that was issued to the client of another game."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": provider.client_id,
        "client_secret": secret or "",
        "redirect_uri": "",  # a code that a game has requested belongs to no address
    }
