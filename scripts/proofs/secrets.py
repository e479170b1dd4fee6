"""Every secret that clients used or got is searched afterwards in logs, traces, metrics, mails and the database."""

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import httpx
import orjson

from scripts.proofs.part import Deadline, PartResult, Progress
from tests.histories.actors import acting
from tests.histories.world import SECRET, SITE_SECRET, TOTP_SECRET, world
from tests.kit.browser import mail_text
from tests.kit.otlp import running_collector
from tests.kit.postgres import fetch

MIN_LENGTH = 8  # shorter values occur by chance
# Members of requests and responses that are secrets, and the headers and parameters of addresses that contain some.
SECRET_MEMBERS = frozenset({
    "password", "new_password", "repeat_password", "current_password", "client_secret", "token", "stoken", "jwt",
    "access_token", "refresh_token", "id_token", "device_code", "code", "otp", "csrf", "link", "hash", "secret",
})  # fmt: skip
MIN_CALLS = 100
PLACES = ("log", "trace or metric", "mail", "database")


class Secrets:
    def __init__(self) -> None:
        self.values = {SECRET, SITE_SECRET, TOTP_SECRET}
        self.mailed: set[str] = set()  # their recipients get them by mail

    def note(self, value: str) -> None:
        """Keeps a value. Of a link, the secret is its token."""
        if "token=" in value:
            self.mailed.add(parse_qs(urlsplit(value).query)["token"][0])
        elif len(value) >= MIN_LENGTH:
            self.values.add(value)

    def note_request(self, request: httpx.Request) -> None:
        if "token" in request.url.params:
            self.note(str(request.url))
        scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
        if scheme:
            self.note(credentials)
        kind = request.headers.get("Content-Type", "")
        if "json" in kind:
            self.note_members(orjson.loads(request.content))
        elif "form-urlencoded" in kind:
            self.note_members({name: values[0] for name, values in parse_qs(request.content.decode()).items()})

    def note_response(self, response: httpx.Response) -> None:
        for cookie in response.cookies.jar:
            self.note(cookie.value or "")
        for values in parse_qs(urlsplit(response.headers.get("Location", "")).query).items():
            self.note_members({values[0]: values[1][0]})
        if "json" in response.headers.get("Content-Type", ""):
            self.note_members(response.json())

    def note_members(self, data: Any) -> None:
        if isinstance(data, list):
            for item in data:
                self.note_members(item)
        elif isinstance(data, dict):
            for name, value in data.items():
                if name in SECRET_MEMBERS and isinstance(value, str):
                    self.note(value)
                else:
                    self.note_members(value)


@contextmanager
def noted_secrets() -> Iterator[Secrets]:
    """Notes the secrets of all requests that are sent with httpx."""
    secrets, send = Secrets(), httpx.Client.send

    def noting(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        request.read()
        secrets.note_request(request)
        response = send(client, request, **options)
        secrets.note_response(response)
        return response

    with patch.object(httpx.Client, "send", noting):
        yield secrets


def run(minutes: float, progress: Progress) -> PartResult:
    deadline, result = Deadline(minutes), PartResult(invariants=[f"No secret is in a {place}." for place in PLACES])
    result.invariants.append("A secret that is mailed goes to one address.")
    with running_collector() as collector, tempfile.TemporaryDirectory() as folder, noted_secrets() as secrets:
        settings = {"SSO_LOG_LEVEL": "debug", "SSO_OTLP_ENDPOINT": collector.endpoint, "SSO_OTLP_INTERVAL_S": "1"}
        with world(Path(folder), settings=settings) as running:
            with acting(running):
                while not deadline.is_over or len(running.history) < MIN_CALLS:
                    progress(f"{deadline}: {len(secrets.values)} secrets in {len(running.history)} calls …")
                    time.sleep(1)
            progress(f"searching {len(secrets.values)} secrets …")
            database = b"\n".join(dump_tables(running.database.dsn))
        mails = [message_from_bytes(path.read_bytes(), policy=default) for path in Path(folder).rglob("*.eml")]
        logs = b"\n".join(path.read_bytes() for path in Path(folder).rglob("*.log*"))
        texts = [logs, b"\n".join(collector.bodies), "\n".join(map(mail_text, mails)).encode(), database]
    for place, text in zip(PLACES, texts, strict=True):
        found = leaks(text, secrets.values - secrets.mailed if place == "mail" else secrets.values | secrets.mailed)
        result.violations += [f"{place}: {secret[:3]}… of {len(secret)} characters" for secret in found]
        result.violations += [] if text else [f"{place}: there was nothing to search"]
        result.figures.append({"Place": place, "MB": round(len(text) / 1e6, 1), "Leaks": len(found)})
    recipients: defaultdict[str, set[str]] = defaultdict(set)
    for mail in mails:
        for secret in leaks(mail_text(mail).encode(), secrets.mailed):
            recipients[secret].add(str(mail["To"]))
    result.violations += [f"mail: one link was sent to {to}" for to in recipients.values() if len(to) > 1]
    result.rounds = len(secrets.values | secrets.mailed)
    return result


def leaks(text: bytes, secrets: Iterable[str]) -> list[str]:
    """Returns the secrets that the text contains, as they are or in hexadecimal, as the database shows bytes."""
    return [secret for secret in secrets if secret.encode() in text or secret.encode().hex().encode() in text]


def dump_tables(dsn: str) -> Iterator[bytes]:
    """Yields the rows of each table as JSON, with all columns."""
    for table in fetch(dsn, "SELECT array_agg(tablename::text) FROM pg_tables WHERE schemaname = 'public'"):
        rows = fetch(dsn, f'SELECT string_agg(row_to_json(t)::text, chr(10)) FROM "{table}" t')
        yield f"{table}: {rows or ''}".encode()
