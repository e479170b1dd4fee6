"""What a request about a session brings, collected from where it may stand (§4.3): the body, the URL, the headers."""

from collections.abc import Mapping, Sequence

from werkzeug.datastructures import Headers

from sso.core.errors import ApiError
from sso.core.net import Address
from sso.gsid.client_proof import ClientEvidence
from sso.gsid.session_access import SessionRequest

LOCATION, SIGNATURE, KEY, ADDRESS, ADDRESS_SIGNATURE = "Location", "Request-Sign", "public_key", "Ip", "Signature"
# The kind of evidence in a header, or in a scheme of Authorization. Any other scheme says nothing here.
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


def collect(
    gsid: str, headers: Headers, in_url: Sequence[str], real: Address, *, key: str = "", signed: bytes
) -> SessionRequest:
    """``in_url``: the parameter Location. ``key``: a public key in the body. ``signed``: what a signature is over."""
    found = _said(headers)
    return SessionRequest(
        gsid=gsid,
        real=real,
        said=tuple(found.get(ADDRESS, ())),
        signature=_one(ADDRESS_SIGNATURE, found),
        evidence=ClientEvidence(
            address=real,
            location=_one(LOCATION, found, in_url),
            signature=_one(SIGNATURE, found),
            public_key=_key(found, key),
            signed=signed,
        ),
    )


def public_key(headers: Headers, in_body: str) -> str | None:
    return _key(_said(headers), in_body)


def said_addresses(headers: Headers) -> tuple[str, ...]:
    """Of the client, as a server says it that acts for one."""
    return tuple(_said(headers).get(ADDRESS, ()))


def _key(found: Mapping[str, Sequence[str]], in_body: str) -> str | None:
    """An empty key is none."""
    sent = [text for text in (in_body, *found.get(KEY, ())) if text]
    return _one(KEY, {}, sent)


def _one(kind: str, found: Mapping[str, Sequence[str]], elsewhere: Sequence[str] = ()) -> str | None:
    sent = (*elsewhere, *found.get(kind, ()))
    if len(sent) > 1:
        raise RepeatedEvidence(kind)
    return sent[0] if sent else None


def _said(headers: Headers) -> dict[str, list[str]]:
    """The headers that matter here, in one pass, by the kind of evidence."""
    found: dict[str, list[str]] = {}
    for title, value in headers:
        name = title.lower()
        if name == "authorization":
            scheme, _, value = value.partition(" ")
            name = f"authorization {scheme.lower()}"
        if kind := _KINDS.get(name):
            found.setdefault(kind, []).append(value.strip() if name.startswith("authorization") else value)
    return found
