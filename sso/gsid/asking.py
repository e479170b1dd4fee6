"""What a request about a session brings, collected from where it may stand (§4.3): the body, the URL, the headers."""

from collections.abc import Mapping, Sequence

from werkzeug.datastructures import Headers

from sso.core.net import Address
from sso.gsid.admission import Asked
from sso.gsid.proof import Evidence

SCHEMES = ("location", "sign", "ip")  # of Authorization; any other scheme says nothing here
_NAMES = frozenset({"ip", "location", "public-key", "request-sign", "sign", "signature"})


def collect(
    gsid: str, headers: Headers, in_url: Sequence[str], real: Address, *, key: str = "", signed: bytes
) -> Asked:
    """``in_url``: the parameter Location. ``key``: a public key in the body. ``signed``: what a signature is over."""
    found = _said(headers)
    signatures = found.get("signature")
    return Asked(
        gsid=gsid,
        real=real,
        said=_addresses(found),
        signature=signatures[0] if signatures else None,
        evidence=Evidence(
            address=real,
            locations=(*in_url, *found.get("location", ()), *found.get("authorization location", ())),
            signatures=(
                *found.get("request-sign", ()),
                *found.get("sign", ()),
                *found.get("authorization sign", ()),
            ),
            public_keys=_keys(found, key),
            signed=signed,
        ),
    )


def public_keys(headers: Headers, in_body: str) -> tuple[str, ...]:
    return _keys(_said(headers), in_body)


def said_addresses(headers: Headers) -> tuple[str, ...]:
    """Of the client, as a server says it that acts for one."""
    return _addresses(_said(headers))


def _keys(found: Mapping[str, Sequence[str]], in_body: str) -> tuple[str, ...]:
    return tuple(text for text in (in_body, *found.get("public-key", ())) if text)


def _addresses(found: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return (*found.get("ip", ()), *found.get("authorization ip", ()))


def _said(headers: Headers) -> dict[str, list[str]]:
    """The headers that matter here, in one pass; those of Authorization by their scheme."""
    found: dict[str, list[str]] = {}
    for title, value in headers:
        name = title.lower()
        if name in _NAMES:
            found.setdefault(name, []).append(value)
        elif name == "authorization":
            scheme, _, rest = value.partition(" ")
            if scheme.lower() in SCHEMES:
                found.setdefault(f"authorization {scheme.lower()}", []).append(rest.strip())
    return found
