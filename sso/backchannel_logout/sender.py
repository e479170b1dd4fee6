"""Sends the queued logout notifications. All workers run it, and one of them claims each notification."""

from typing import Any

import structlog

from sso.backchannel_logout.store import claim_notification, delete_notification, store_failed_notification
from sso.config import Settings
from sso.core.ids import secret_token
from sso.core.outgoing_http import OutgoingClient, OutgoingLimits
from sso.core.outgoing_url import is_outgoing_url
from sso.core.receiver_addresses import ReceiverAddresses
from sso.db.clock import DatabaseClock
from sso.db.database import Database
from sso.db.transaction import Row
from sso.delivery.due_queue import LEASE_S, Due, DueQueue, Failure, QueuedDelivery, RetryPolicy, origin_fields
from sso.delivery.http import post
from sso.keys.keyset import KeySet
from sso.mail.outbox import TOPIC  # most changes that end sessions send a mail as well, so one message wakes both
from sso.telemetry.counters import DELIVERIES

MAX_TRIES = 9
LIMITS = OutgoingLimits(timeout_s=5.0, max_bytes=0, max_requests=32)
MAX_PER_CLIENT = 4
TOKEN_S = 120
LOGOUT_TOKEN_JWT = "LOGOUT+JWT"  # noqa: S105 - the type in the header of the token
EVENT = "http://schemas.openid.net/event/backchannel-logout"


log = structlog.get_logger()


class LogoutDelivery(QueuedDelivery[Row]):
    name = "logout"
    retries = RetryPolicy(first_pause_s=5.0, factor=3.0, max_tries=MAX_TRIES)  # 3 hours before the last one
    max_per_receiver = MAX_PER_CLIENT

    def __init__(
        self, database: Database, keys: KeySet, issuer: str, client: OutgoingClient, *, allow_http: bool
    ) -> None:
        self._database = database
        self._keys = keys
        self._issuer = issuer
        self._client = client
        self._allow_http = allow_http

    async def claim(self, busy: list[str]) -> Due[Row] | None:
        row = await claim_notification(self._database, LEASE_S, busy)
        if row is None:
            return None
        fields = {"id": row["id"], "client": row["client_id"], **origin_fields(row)}
        return Due(row, row["client_id"], row["tries"], fields)

    async def send(self, item: Row) -> Failure | None:
        if not item["uri"]:  # the site no longer wants to be notified
            return None
        if not is_outgoing_url(item["uri"], allow_http=self._allow_http):
            return Failure("backchannel_logout_uri: expected an https address", can_be_retried=False)
        claims = logout_claims(item, self._issuer, self._database.clock)
        token = self._keys.signer(item["id_alg"]).sign(claims, LOGOUT_TOKEN_JWT)
        return await post(self._client, item["uri"], {}, data={"logout_token": token})

    async def finish(self, due: Due[Row]) -> None:
        await delete_notification(self._database, due.item["id"])
        if due.item["uri"]:
            DELIVERIES.add(self.name, "delivered")
            log.info("logout.notification_delivered", tries=due.tries, **due.log_fields)

    async def store_failure(self, item: Row, failure: Failure, retry_after_s: float | None) -> None:
        await store_failed_notification(self._database, item["id"], retry_after_s, failure.reason)


def logout_claims(row: Row, issuer: str, clock: DatabaseClock) -> dict[str, Any]:
    """Returns the claims of a logout token (OpenID Connect Back-Channel Logout section 2.4).

    Each attempt has its own ``jti``: the site may have used the previous one although its answer was lost. ID tokens of
    strict clients have no ``sid``, so their logout tokens have none either.
    """
    now = int(clock.now())
    claims = {
        "iss": issuer,
        "aud": row["client_id"],
        "sub": row["sub"],
        "iat": now,
        "exp": now + TOKEN_S,
        "jti": secret_token(),
        "events": {EVENT: {}},
    }
    return claims | ({"sid": row["sid"]} if row["profile"] != "strict" else {})


def build_logout_sender(settings: Settings, database: Database, keys: KeySet) -> DueQueue:
    addresses = ReceiverAddresses(settings.backchannel_networks, loopback=settings.is_loopback)
    client = OutgoingClient(settings.backchannel_ca_file, LIMITS, addresses.allows)
    delivery = LogoutDelivery(database, keys, settings.base_url, client, allow_http=settings.is_loopback)
    return DueQueue(TOPIC, delivery, max_deliveries=LIMITS.max_requests)
