"""Documents that clients publish, at addresses that they choose. One home for all of them, under the same rules."""

from sso.config import Settings
from sso.core.fetched_documents import FetchedDocuments
from sso.core.outgoing_http import OutgoingClient, OutgoingLimits
from sso.core.receiver_addresses import ReceiverAddresses

TIMEOUT_S = 5.0  # a request of a user or a client waits for it
MAX_REQUESTS = 8  # at the same time, in this worker


def build_client_documents(
    settings: Settings, max_bytes: int, *, entered_by_administrators: bool = False
) -> FetchedDocuments:
    """They are at public addresses. Those that administrators entered may be where logout notifications may be sent to.

    Anybody else must not reach the hosts in ``SSO_BACKCHANNEL_NETWORKS``.
    """
    limits = OutgoingLimits(TIMEOUT_S, max_bytes, MAX_REQUESTS)
    networks = settings.backchannel_networks if entered_by_administrators else ()
    addresses = ReceiverAddresses(networks, loopback=settings.is_loopback)
    client = OutgoingClient(settings.backchannel_ca_file, limits, addresses.allows)
    return FetchedDocuments(client, allow_http=settings.is_loopback)
