"""Sends one event to a receiver (RFC 8935)."""

import orjson

from sso.core.outgoing_http import AddressRefused, NoAnswer, OutgoingClient, OutgoingLimits, UnusableAnswer
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.delivery.due_queue import Failure

# Only the body of a rejection says something.
LIMITS = OutgoingLimits(timeout_s=10.0, max_bytes=64 * 1024, max_requests=32, read_statuses=frozenset((400,)))
# Errors of RFC 8935 that say something about the sender, which an operator can correct, and not about the event.
_RETRIED_ERRORS = ("authentication_failed", "access_denied", "invalid_key")


async def push_event(
    client: OutgoingClient, url: str, token: str, authorization: str = "", *, allow_http: bool
) -> Failure | None:
    """Returns None if the receiver has accepted the event. A failure that is not retried is a rejection."""
    if not is_outgoing_url(url, allow_http=allow_http):
        return Failure(f"endpoint_url: {EXPECTED}")
    headers = {"Content-Type": "application/secevent+jwt", "Accept": "application/json"}
    if authorization:
        headers["Authorization"] = authorization
    try:
        answer = await client.send("POST", url, headers, content=token.encode())
    except (AddressRefused, NoAnswer, UnusableAnswer) as error:
        return Failure(str(error))
    if 200 <= answer.status < 300:
        return None
    reported = _reported_error(answer.body) if answer.status == 400 else ""
    if reported and reported not in _RETRIED_ERRORS:
        return Failure(f"rejected by the receiver: {reported}", can_be_retried=False)
    return Failure(f"status {answer.status} {reported}".strip())


def _reported_error(body: bytes) -> str:
    """Returns the ``err`` of a response of RFC 8935, or an empty text."""
    try:
        error = orjson.loads(body)["err"]
    except (ValueError, KeyError, TypeError):
        return ""
    return error[:64] if isinstance(error, str) and error.isascii() and error.isprintable() else ""
