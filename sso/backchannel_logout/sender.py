"""Sends the queued logout notifications. All workers run it, and one of them claims each notification."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import structlog
import trio

from sso.bus.bus import Bus
from sso.core.ids import secret_token
from sso.core.outgoing_http import AddressRefused, NoAnswer, OutgoingClient, OutgoingLimits
from sso.core.outgoing_url import is_outgoing_url
from sso.db.clock import DatabaseClock
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.db.transaction import Row
from sso.keys.keyset import KeySet
from sso.mail.outbox import TOPIC  # most changes that end sessions send a mail as well, so one message wakes both

MAX_TRIES = 9
FIRST_PAUSE_S, PAUSE_FACTOR = 5, 3  # pauses of 5 s, 15 s, 45 s, ..., and 3 hours before the last try
LEASE_S = 60.0  # longer than a request may take; the notification of a killed worker is sent again
LIMITS = OutgoingLimits(timeout_s=5.0, max_bytes=0, max_requests=32)
MAX_PER_CLIENT = 4  # requests at the same time, so that a site that does not answer does not hold up the others
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
# Without a pause, the notification is abandoned. It stays for `sso doctor` until it expires.
_POSTPONE = Statement(
    """UPDATE logout_notifications SET next_try = now() + make_interval(secs => :pause), problem = :problem
    WHERE id = :id"""
)

log = structlog.get_logger()


@dataclass(frozen=True)
class DeliveryProblem:
    reason: str
    can_be_retried: bool = True


class LogoutSender:
    def __init__(
        self, database: Database, keys: KeySet, issuer: str, client: OutgoingClient, *, allow_http: bool
    ) -> None:
        self._database = database
        self._keys = keys
        self._issuer = issuer
        self._client = client
        self._allow_http = allow_http
        self._in_flight: Counter[str] = Counter()  # by client id
        self._wake_up = trio.Event()
        self.delivered = self.failed = self.abandoned = 0  # since the start of this worker

    async def run(self, bus: Bus, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self._listen, bus)
            task_status.started()
            while True:
                self._wake_up = trio.Event()
                try:
                    await self._start_due(nursery)
                except DatabaseError as error:
                    log.warning("logout.queue_failed", reason=str(error))
                await self._wake_up.wait()

    async def _listen(self, bus: Bus, *, task_status: trio.TaskStatus[None]) -> None:
        with bus.subscribe(TOPIC) as signals:
            task_status.started()
            async for _ in signals:
                self._wake_up.set()

    async def _start_due(self, nursery: trio.Nursery) -> None:
        while self._in_flight.total() < LIMITS.max_requests:
            busy = [client_id for client_id, count in self._in_flight.items() if count >= MAX_PER_CLIENT]
            row = await self._database.row(_CLAIM, lease=LEASE_S, busy=busy)
            if row is None:
                return
            self._in_flight[row["client_id"]] += 1
            nursery.start_soon(self._deliver, row)

    async def _deliver(self, row: Row) -> None:
        try:
            if not row["uri"]:  # the site no longer wants to be notified
                await self._database.value(_DELETE, id=row["id"])
            else:
                await self._record(row, await self._send(row))
        except DatabaseError as error:  # the notification is sent again when the lease is over
            log.warning("logout.queue_failed", reason=str(error))
        finally:
            self._in_flight[row["client_id"]] -= 1
            self._in_flight += Counter()  # removes the clients without requests
            self._wake_up.set()

    async def _send(self, row: Row) -> DeliveryProblem | None:
        """Returns None if the site has accepted the notification, else what went wrong."""
        if row["tries"] > MAX_TRIES:
            return DeliveryProblem("the last attempt was interrupted", can_be_retried=False)
        if not is_outgoing_url(row["uri"], allow_http=self._allow_http):
            return DeliveryProblem("backchannel_logout_uri: expected an https address", can_be_retried=False)
        try:
            claims = logout_claims(row, self._issuer, self._database.clock)
            token = self._keys.signer(row["id_alg"]).sign(claims, LOGOUT_TOKEN_JWT)
            answer = await self._client.send("POST", row["uri"], {}, data={"logout_token": token})
        except AddressRefused as error:
            return DeliveryProblem(str(error), can_be_retried=False)
        except NoAnswer as error:
            return DeliveryProblem(str(error))
        except Exception as error:  # one notification must not stop the others
            return DeliveryProblem(type(error).__name__)
        return None if 200 <= answer.status < 300 else DeliveryProblem(f"status {answer.status}")

    async def _record(self, row: Row, problem: DeliveryProblem | None) -> None:
        tries, fields = row["tries"], _log_fields(row)
        if problem is None:
            await self._database.value(_DELETE, id=row["id"])
            self.delivered += 1
            log.info("logout.notification_delivered", tries=tries, **fields)
            return
        self.failed += 1
        is_last = tries >= MAX_TRIES or not problem.can_be_retried
        pause_s = None if is_last else float(FIRST_PAUSE_S * PAUSE_FACTOR ** (tries - 1))
        log.warning("logout.notification_failed", tries=tries, reason=problem.reason, retry_after_s=pause_s, **fields)
        await self._database.value(_POSTPONE, id=row["id"], pause=pause_s, problem=problem.reason)
        if is_last:
            self.abandoned += 1
            log.error("logout.notification_abandoned", tries=tries, **fields)


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


def _log_fields(row: Row) -> dict[str, Any]:
    """Returns the fields of the notification and of the request that ended the session."""
    origin = {"request": row["request_id"], "trace": row["trace_id"]}
    fields = {name: value for name, value in origin.items() if value}
    return {"id": row["id"], "client": row["client_id"], **fields}
