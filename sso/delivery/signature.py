"""The signature of requests to receivers that share a secret with this service."""

import hashlib
import hmac


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Returns the header ``Webhook-Signature``: HMAC-SHA256 over the time, a dot and the body."""
    digest = hmac.new(secret.encode(), b"%d.%b" % (timestamp, body), hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"
