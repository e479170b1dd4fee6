"""URLs that administrators enter, and that this service will send requests to."""

from urllib.parse import urlsplit

from sso.core.net import parse_address
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.core.receiver_addresses import ReceiverAddresses

REFUSED = "the host has a private address, which is allowed only if SSO_WEBHOOK_NETWORKS contains it"


class ReceiverUrls:
    """What can be said about a URL without asking for the addresses of its host, which are checked at each request."""

    def __init__(self, addresses: ReceiverAddresses, *, allow_http: bool) -> None:
        self._addresses = addresses
        self._allow_http = allow_http

    def problem_of(self, url: str) -> str | None:
        """Returns why no request may be sent there, or None."""
        if not is_outgoing_url(url, allow_http=self._allow_http):
            return EXPECTED
        try:
            address = parse_address(urlsplit(url).hostname or "")
        except ValueError:  # a name
            return None
        return None if self._addresses.allows(address) else REFUSED
