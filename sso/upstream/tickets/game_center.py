"""Signatures of Game Center (``fetchItems(forIdentityVerificationSignature:)``), checked with Apple's certificate."""

import base64
import re
import struct
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

from msgspec import Struct

from sso.core.certificates import (
    Certificate,
    UnusableCertificate,
    has_signed,
    load_certificate,
    load_certificates,
    signing_key,
)
from sso.core.field_errors import FieldError
from sso.db.clock import DatabaseClock
from sso.upstream.errors import InvalidAnswer
from sso.upstream.http_client import ProviderClient
from sso.upstream.model import MAX_NAME, IdentityProvider, clean_text
from sso.upstream.provider_document import ProviderDocument
from sso.upstream.tickets.model import StoreAccount, Ticket, TicketRefused, member_of
from sso.web.body import JSON

ORGANIZATION = "Apple Inc."
MAX_SKEW_S = 60
CERTIFICATE_S = 3600.0
MAX_CACHED = 32
# The signature covers the id and the bundle id without a separator. Ids of one length leave no doubt where the bundle
# id begins: otherwise, the signature of another game could be read as that of another player of this one.
_PLAYER_ID = re.compile(r"[A-Z]:_[0-9a-f]{32}", re.ASCII)


class Signed(Struct, frozen=True):
    """What the game has got from Game Center."""

    player_id: str
    url: str
    timestamp: int  # in milliseconds
    salt: bytes
    signature: bytes
    name: str  # not signed

    def text(self, bundle_id: str) -> bytes:
        return self.player_id.encode() + bundle_id.encode() + struct.pack(">Q", self.timestamp) + self.salt


class GameCenter:
    def __init__(self, client: ProviderClient, clock: DatabaseClock) -> None:
        self._client = client
        self._clock = clock
        self._certificates: dict[str, ProviderDocument[Certificate]] = {}  # by address, once they were read

    async def verify(self, provider: IdentityProvider, secret: str | None, ticket: Ticket) -> StoreAccount:
        signed = parse_ticket(ticket)
        now = self._clock.now()
        age = now - signed.timestamp / 1000
        if not -MAX_SKEW_S <= age <= provider.max_age:
            raise TicketRefused("timestamp: too old, or in the future")
        check_key_url(provider, signed.url)
        certificate = await self._certificate(signed.url)
        try:
            trusted = load_certificates(provider.certificates) if provider.certificates else []
            key = signing_key(certificate, trusted, ORGANIZATION, datetime.fromtimestamp(now, UTC))
        except UnusableCertificate as error:
            raise InvalidAnswer(f"{signed.url}: {error}") from None
        if not has_signed(key, signed.signature, signed.text(provider.client_id)):
            raise TicketRefused("signature: wrong")
        ticket_id = f"{signed.player_id} {signed.timestamp} {signed.salt.hex()}"
        return StoreAccount(signed.player_id, signed.name, ticket_id, provider.max_age + 2 * MAX_SKEW_S)

    async def _certificate(self, url: str) -> Certificate:
        document = self._certificates.get(url) or ProviderDocument(partial(self._read_certificate, url))
        certificate = await document.get(CERTIFICATE_S)
        if url not in self._certificates:
            if len(self._certificates) >= MAX_CACHED:
                self._certificates.clear()
            self._certificates[url] = document
        return certificate

    async def _read_certificate(self, url: str) -> Certificate:
        answer = await self._client.get(url, {"Accept": "*/*"})
        if answer.status in (404, 410):
            raise TicketRefused(f"{url}: status {answer.status}")
        if answer.status != 200:
            raise InvalidAnswer(f"{url}: status {answer.status}")
        try:
            return load_certificate(answer.body)
        except UnusableCertificate as error:
            raise InvalidAnswer(f"{url}: {error}") from None


def check_key_url(provider: IdentityProvider, url: str) -> None:
    """Raises TicketRefused unless the address is on the host of the issuer, or one below it, where Apple's keys are."""
    issuer = urlsplit(provider.issuer)
    form = rf"{issuer.scheme}://(?:[a-z0-9-]+\.)*{re.escape(issuer.netloc)}/public-key/[A-Za-z0-9_-]{{1,64}}\.cer"
    if not re.fullmatch(form, url, re.ASCII):
        raise TicketRefused("public_key_url: not an address of Apple's keys")


def parse_ticket(ticket: Ticket) -> Signed:
    if not isinstance(ticket, dict):
        raise FieldError(("ticket",), "expected an object with what Game Center has returned")
    player_id = member_of(ticket, "player_id", 64)
    if not _PLAYER_ID.fullmatch(player_id):
        raise FieldError(("ticket", "player_id"), "expected the teamPlayerID or gamePlayerID of the player")
    timestamp = ticket.get("timestamp")
    if isinstance(timestamp, str) and timestamp.isascii() and timestamp.isdecimal() and len(timestamp) < 20:
        timestamp = int(timestamp)
    if type(timestamp) is not int or not 0 <= timestamp < 2**63:
        raise FieldError(("ticket", "timestamp"), "expected milliseconds")
    return Signed(
        player_id=player_id,
        url=member_of(ticket, "public_key_url", 256),
        timestamp=timestamp,
        salt=_decode(ticket, "salt", 256),
        signature=_decode(ticket, "signature", 2048),
        name=clean_text(ticket.get("name"), MAX_NAME),
    )


def _decode(ticket: dict[str, JSON], name: str, max_length: int) -> bytes:
    try:
        return base64.b64decode(member_of(ticket, name, max_length), validate=True)
    except ValueError:
        raise FieldError(("ticket", name), "expected base64") from None
