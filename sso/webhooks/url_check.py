"""Checks the address of a new or changed webhook."""

from sso.core.outgoing_http import AddressRefused, OutgoingClient
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.perm.errors import InvalidInput


async def check_webhook_url(client: OutgoingClient, url: str, *, allow_http: bool) -> None:
    """Raises InvalidInput if the address is not valid, or its host is one that events must not be sent to."""
    if not is_outgoing_url(url, allow_http=allow_http):
        raise InvalidInput(f"url: {EXPECTED}")
    try:
        await client.check_host(url)
    except AddressRefused:
        raise InvalidInput(
            "url: the host has a private address, which is allowed only if SSO_WEBHOOK_NETWORKS contains it"
        ) from None
