"""Sends the queued logout notifications. All workers run it, and one of them claims each notification."""

from typing import Any

import structlog

from sso.config import Settings
from sso.core.ids import secret_token
from sso.core.outgoing_http import OutgoingClient, OutgoingLimits
from sso.core.outgoing_url import is_outgoing_url
from sso.core.receiver_addresses import ReceiverAddresses
from sso.db.clock import DatabaseClock
from sso.db.database import Database
from sso.db.statement import Statement
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

_CLAIM = Statement(
    """UPDATE logout_notifications n SET tries = tries + 1, next_try = now() + make_interval(secs => :lease)
    FROM oauth_clients c WHERE c.client_id = n.client_id AND n.id = (
        SELECT id FROM logout_notifications
        WHERE next_try <= now() AND expires > now() AND client_id <> ALL (CAST(:busy AS text[]))
        ORDER BY next_try LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING n.id, n.client_id, n.sub, n.sid, n.tries, n.request_id, n.trace_id, c.profile, c.id_alg,
        CASE WHEN c.disabled THEN '' ELSE c.backchannel_logout_uri END AS uri"""
)
_DELETE = Statement("DELETE FROM logout_notifications WHERE id = :id")
# Without a pause, the notification has failed. It stays for `sso doctor` until it expires.
_STORE_FAILURE = Statement(
    """UPDATE logout_notifications SET next_try = now() + make_interval(secs => :pause), problem = :problem
    WHERE id = :id"""
)

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
        row = await self._database.row(_CLAIM, lease=LEASE_S, busy=busy)
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
        await self._database.value(_DELETE, id=due.item["id"])
        if due.item["uri"]:
            DELIVERIES.add(self.name, "delivered")
            log.info("logout.notification_delivered", tries=due.tries, **due.log_fields)

    async def store_failure(self, item: Row, failure: Failure, retry_after_s: float | None) -> None:
        await self._database.value(_STORE_FAILURE, id=item["id"], pause=retry_after_s, problem=failure.reason)


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
    return claims | ({"sid": row["sid"]} if row["profile"] == "oidc" else {})


def build_logout_sender(settings: Settings, database: Database, keys: KeySet) -> DueQueue:
    addresses = ReceiverAddresses(settings.backchannel_networks, loopback=settings.is_loopback)
    client = OutgoingClient(settings.backchannel_ca_file, LIMITS, addresses.allows)
    delivery = LogoutDelivery(database, keys, settings.base_url, client, allow_http=settings.is_loopback)
    return DueQueue(TOPIC, delivery, max_deliveries=LIMITS.max_requests)
