"""Reads the requests of a webhook: only those that the service has signed, and only recent ones."""

import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping

from sso.client.call import Record
from sso.client.errors import WebhookRefused

MAX_AGE_S = 300
_HEADER = re.compile(r"t=([0-9]{1,15}),v1=([^,]*)", re.ASCII)


def read_webhook(secret: str, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Record:
    """Returns the event of a request, with ``id`` and ``type``. Raises WebhookRefused.

    ``body`` is the body as it was received. A repetition has the same ``id``.
    """
    text = next((value for name, value in headers.items() if name.lower() == "webhook-signature"), "")
    header = _HEADER.fullmatch(text)
    if header is None:
        raise WebhookRefused("malformed", "Webhook-Signature: expected t=<Unix seconds>,v1=<signature>")
    timestamp, signature = header.groups()
    expected = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    # Anybody can sign with an empty secret, which is a setting that is missing.
    if not secret or not hmac.compare_digest(expected.encode(), signature.encode(errors="replace")):
        raise WebhookRefused("signature", "the signature is wrong")
    if abs((time.time() if now is None else now) - int(timestamp)) > MAX_AGE_S:
        raise WebhookRefused("old", "the request is too old: it may be a recorded one")
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("id"), str):
        raise WebhookRefused("malformed", "the body is no event")
    return Record({"type": "permissions_changed", **event})
