"""Parsing of a request about a session: its evidence may be in the body, the URL or the headers (§4.3)."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from werkzeug.datastructures import Headers

from sso.core.errors import ApiError, Forbidden
from sso.core.net import Address
from sso.gsid.client_proof import ClientEvidence

LOCATION, SIGNATURE, KEY, ADDRESS, ADDRESS_SIGNATURE = "Location", "Request-Sign", "public_key", "Ip", "Signature"
# Maps a header, or "authorization" and its scheme, to the kind of evidence it holds. Other schemes are ignored.
_KINDS = {
    "location": LOCATION,
    "authorization location": LOCATION,
    "request-sign": SIGNATURE,
    "sign": SIGNATURE,
    "authorization sign": SIGNATURE,
    "public-key": KEY,
    "ip": ADDRESS,
    "authorization ip": ADDRESS,
    "signature": ADDRESS_SIGNATURE,
}


class RepeatedEvidence(ApiError):
    """A request carries evidence of one kind twice, in one place or in two."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"{kind}: expected at most one, in one place")


class SessionRequest(Struct, frozen=True):
    """A request about a session: its origin, the client address that a server claims, and the client's evidence."""

    gsid: str
    origin: Address  # where the request itself came from
    claimed_addresses: tuple[str, ...]  # the client's address, as sent by a server that acts for the client
    address_signature: str | None  # by which that server proves that it may
    evidence: ClientEvidence

    @classmethod
    def with_address_only(cls, gsid: str, origin: Address) -> "SessionRequest":
        return cls(gsid, origin, (), None, ClientEvidence(origin))

    @property
    def has_address_only(self) -> bool:
        evidence = self.evidence
        others = (self.address_signature, evidence.location, evidence.signature, evidence.public_key)
        return not self.claimed_addresses and all(text is None for text in others)


def parse_session_request(
    gsid: str, headers: Headers, url_locations: Sequence[str], origin: Address, *, body_key: str = "", signed: bytes
) -> SessionRequest:
    """``url_locations``: values of the URL parameter Location. ``signed``: the bytes that a signature must cover."""
    values = _evidence_by_kind(headers)
    return SessionRequest(
        gsid=gsid,
        origin=origin,
        claimed_addresses=tuple(values.get(ADDRESS, ())),
        address_signature=_at_most_one(ADDRESS_SIGNATURE, values),
        evidence=ClientEvidence(
            address=origin,
            location=_at_most_one(LOCATION, values, url_locations),
            signature=_at_most_one(SIGNATURE, values),
            public_key=_public_key(values, body_key),
            signed_bytes=signed,
        ),
    )


def public_key(headers: Headers, body_key: str) -> str | None:
    """Returns the public key of a request, from the header or the body."""
    return _public_key(_evidence_by_kind(headers), body_key)


def claimed_addresses(headers: Headers) -> tuple[str, ...]:
    """Returns the client addresses that a server claims in the header Ip or in Authorization."""
    return tuple(_evidence_by_kind(headers).get(ADDRESS, ()))


def single_address(claimed: tuple[str, ...]) -> str | None:
    """Returns the claimed address. It may be sent in several places; raises Forbidden if they differ."""
    if len({text.strip() for text in claimed}) > 1:
        raise Forbidden("Ip: expected the same address in all places")
    return claimed[0] if claimed else None


def _public_key(values: Mapping[str, Sequence[str]], body_key: str) -> str | None:
    """An empty key counts as no key."""
    keys = [text for text in (body_key, *values.get(KEY, ())) if text]
    return _at_most_one(KEY, {}, keys)


def _at_most_one(kind: str, values: Mapping[str, Sequence[str]], elsewhere: Sequence[str] = ()) -> str | None:
    texts = (*elsewhere, *values.get(kind, ()))
    if len(texts) > 1:
        raise RepeatedEvidence(kind)
    return texts[0] if texts else None


def _evidence_by_kind(headers: Headers) -> dict[str, list[str]]:
    """Collects the values of all evidence headers in one pass."""
    values: dict[str, list[str]] = {}
    for header, value in headers:
        name = header.lower()
        if name == "authorization":
            scheme, _, value = value.partition(" ")
            name = f"authorization {scheme.lower()}"
        if kind := _KINDS.get(name):
            values.setdefault(kind, []).append(value.strip() if name.startswith("authorization") else value)
    return values
