"""What a request about a session brings, collected from where it may stand (§4.3): the body, the URL, the headers."""

from collections.abc import Sequence

from werkzeug.datastructures import Headers

from sso.core.net import Address
from sso.gsid.admission import Asked
from sso.gsid.proof import Evidence

SCHEMES = ("location", "sign", "ip")  # of Authorization; any other scheme says nothing here


def collect(
    gsid: str, headers: Headers, in_url: Sequence[str], real: Address, *, key: str = "", signed: bytes
) -> Asked:
    """``in_url``: the parameter Location. ``key``: a public key in the body. ``signed``: what a signature is over."""
    by_scheme = _authorization(headers)
    return Asked(
        gsid=gsid,
        real=real,
        said=said_addresses(headers),
        signature=headers.get("Signature"),
        evidence=Evidence(
            address=real,
            locations=(*in_url, *headers.getlist("Location"), *by_scheme["location"]),
            signatures=(*headers.getlist("Request-Sign"), *headers.getlist("Sign"), *by_scheme["sign"]),
            public_keys=public_keys(headers, key),
            signed=signed,
        ),
    )


def public_keys(headers: Headers, in_body: str) -> tuple[str, ...]:
    return tuple(text for text in (in_body, *headers.getlist("Public-Key")) if text)


def said_addresses(headers: Headers) -> tuple[str, ...]:
    """Of the client, as a server says it that acts for one."""
    return (*headers.getlist("Ip"), *_authorization(headers)["ip"])


def _authorization(headers: Headers) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = dict.fromkeys(SCHEMES, ())
    for line in headers.getlist("Authorization"):
        scheme, _, value = line.partition(" ")
        if scheme.lower() in found:
            found[scheme.lower()] += (value.strip(),)
    return found
