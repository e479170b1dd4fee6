"""Receives events of sso: verifies the signature, ignores repetitions, and prints what has changed.

python receiver.py 8090, with the secret of the webhook in the variable WEBHOOK_SECRET.
"""

import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["WEBHOOK_SECRET"]
MAX_AGE_S = 300
MAX_BODY = 2**20
newest_id = ""  # a real program stores it together with its copy of the data


def is_authentic(header: str, body: bytes) -> bool:
    """Checks ``t=<Unix seconds>,v1=<HMAC-SHA256 of "<t>.<body>" in hex>``."""
    try:
        fields = dict(item.split("=", 1) for item in header.split(","))
        timestamp = int(fields["t"])
    except (KeyError, ValueError):
        return False
    expected = hmac.new(SECRET.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    is_recent = abs(time.time() - timestamp) < MAX_AGE_S  # an old request may be a recorded one
    return is_recent and hmac.compare_digest(expected.encode(), fields.get("v1", "").encode())


def handle(event: dict) -> None:
    if "gained" in event:
        print(f"user {event['user_id']} at application {event['application_id']}:")
        print(f"  gains {event['gained']}, loses {event['lost']}", flush=True)
    else:
        print(f"{event['type']} {event.get('user_id', '')}", flush=True)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        global newest_id
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), MAX_BODY))
        if not is_authentic(self.headers.get("Webhook-Signature", ""), body):
            self.answer(403)
            return
        event = json.loads(body)
        if event["id"] > newest_id:  # ids grow; after a lost answer the same event comes again
            handle(event)
            newest_id = event["id"]
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Does not log requests."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
