"""Validation of redirect URIs.

Browsers and URL libraries interpret some strings differently (a backslash, a tab, a user-info part), and a code that is
sent to the wrong host gives the account away. So a URI is not parsed leniently here: it must match a grammar that has
only one interpretation, and the redirect uses exactly the string that was matched.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import quote, unquote_plus

from msgspec import Struct

from sso.core.net import is_ipv6

MAX_URI_LENGTH = 2048
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
NOT_ABSOLUTE = "expected an absolute http or https URI of at most 2,048 characters, without fragment and user-info"
NOT_A_HOST, NOT_A_URI = "the host is not one of the client's redirect_hosts", "is not one of the client's redirect_uris"
NOT_REGISTERED = frozenset({NOT_A_HOST, NOT_A_URI})  # the URI is well-formed, but not one of the client's
RESPONSE_PARAMETERS = frozenset({"code", "state", "error", "error_description", "iss"})

# Printable ASCII without \ " < > ^ ` { | } and #; or a percent-encoded byte that is not a control character.
_CHARACTER = r"(?:[!$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]|%(?:[2-6][0-9A-Fa-f]|7[0-9A-Ea-e]|[89A-Fa-f][0-9A-Fa-f]))"
_URI = re.compile(
    r"(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://"
    r"(?P<host>[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
    rf"(?P<rest>(?:[/?]{_CHARACTER}*)?)",
    re.ASCII,
)


def _parse(uri: str) -> re.Match[str] | None:
    """Returns the parts of a URI, or None if it is not one that clients may have."""
    match = _URI.fullmatch(uri)
    is_malformed = match is not None and match["host"].startswith("[") and not is_ipv6(match["host"][1:-1])
    return None if is_malformed else match


class Redirect(Struct, frozen=True):
    """A validated redirect URI of a client. Only the functions below create one."""

    uri: str
    origin: str

    @property
    def loopback_port(self) -> int | None:
        """The port if the URI belongs to a program on the user's machine, otherwise None."""
        match = _parse(self.uri)
        if match is None or match["host"].lower() not in LOOPBACK:
            return None
        return int(match["port"] or (443 if match["scheme"].lower() == "https" else 80))

    def with_parameters(self, **parameters: str | bytes | None) -> str:
        """Returns the URI with the parameters appended to its own query. Parameters that are None are left out."""
        added = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value is not None)
        if not added:
            return self.uri
        if "?" not in self.uri:
            return f"{self.uri}?{added}"
        return self.uri + ("" if self.uri.endswith(("?", "&")) else "&") + added


def match_redirect_uri(
    uri: str, hosts: Collection[str], uris: Collection[str] = (), *, allow_http: bool = False
) -> Redirect | str:
    """Returns the redirect if the URI belongs to the client, otherwise the reason why it does not.

    ``hosts`` are the client's hosts, written ``http://host`` if the host may be used without TLS. ``uris`` are its
    exact redirect URIs; if there are none, any URI at one of the hosts is accepted. ``allow_http`` accepts http for
    every host: it is set if this service itself is used without TLS.
    """
    if len(uri) > MAX_URI_LENGTH or (match := _parse(uri)) is None:
        return NOT_ABSOLUTE
    scheme, host, port = match["scheme"].lower(), match["host"].lower(), match["port"]
    if port is not None and int(port) > 65535:
        return NOT_ABSOLUTE
    if _parameter_names(match["rest"]) & RESPONSE_PARAMETERS:
        return "its query must not have code, state, error, error_description or iss"
    insecure_host = f"http://{host}"
    if hosts and host not in hosts and insecure_host not in hosts:
        return NOT_A_HOST
    if scheme == "http" and not (allow_http or host in LOOPBACK or insecure_host in hosts):
        return "expected https"
    if uris:
        if uri not in uris and not (host in LOOPBACK and any(_equal_except_port(uri, listed) for listed in uris)):
            return NOT_A_URI
    elif not hosts:
        return "the client has neither redirect_hosts nor redirect_uris"
    return Redirect(uri, f"{scheme}://{host}" + (f":{port}" if port else ""))


def is_redirect_uri(uri: str, hosts: Sequence[str], uris: Sequence[str] = (), *, allow_http: bool = False) -> bool:
    """Returns whether the URI belongs to the client. It takes the arguments of :func:`match_redirect_uri`."""
    return isinstance(match_redirect_uri(uri, hosts, uris, allow_http=allow_http), Redirect)


def match_post_logout_redirect_uri(
    uri: str, hosts: Sequence[str], uris: Sequence[str], after_logout: Sequence[str] = (), *, allow_http: bool
) -> Redirect | None:
    """Returns the redirect after a logout if it belongs to the client, otherwise None.

    If the client has listed ``after_logout``, it must be one of these. Otherwise its origin must be that of a redirect
    URI; the path may differ from that of the listed redirect URIs, because no code is sent there.
    """
    if after_logout:
        redirect = match_redirect_uri(uri, (), after_logout, allow_http=allow_http)
        return redirect if isinstance(redirect, Redirect) else None
    if not hosts:
        parsed = _parse(uri)
        if parsed is None or not uris:
            return None
        hosts = [parsed["host"].lower()]  # the origins of the listed URIs decide below
    redirect = match_redirect_uri(uri, hosts, allow_http=allow_http)
    if isinstance(redirect, str):
        return None
    return redirect if not uris or any(_origin(listed) == redirect.origin for listed in uris) else None


def browser_origin(uri: str) -> str:
    """Returns the origin of a URI as browsers write it: lower case, no default port. Returns "" for other texts."""
    origin = _origin(uri)
    scheme, _, _ = origin.partition("://")
    return origin.removesuffix(":443" if scheme == "https" else ":80")


def _origin(uri: str) -> str:
    match = _parse(uri)
    if match is None:
        return ""
    return f"{match['scheme'].lower()}://{match['host'].lower()}" + (f":{match['port']}" if match["port"] else "")


def _equal_except_port(uri: str, listed: str) -> bool:
    """Returns whether both are the same loopback URI apart from the port.

    A native application listens on any port that is free (RFC 8252 section 7.3).
    """
    actual, expected = _parse(uri), _parse(listed)
    if actual is None or expected is None or actual["host"].lower() not in LOOPBACK:
        return False
    return all(actual[part] == expected[part] for part in ("scheme", "host", "rest"))


def _parameter_names(rest: str) -> set[str]:
    query = rest.partition("?")[2]
    return {unquote_plus(pair.partition("=")[0]) for pair in re.split("[&;]", query)}


def redirect_warnings(uris: Iterable[str], hosts: Iterable[str]) -> list[str]:
    """Returns a sentence for each redirect URI and host of a client to which codes are sent without TLS."""
    listed = [("redirect_uris", uri) for uri in uris] + [("redirect_hosts", host) for host in hosts]
    matches = [(name, match) for name, uri in listed if (match := _parse(uri))]
    return [
        f"{name}: {match[0]} is not https, so codes that are sent there can be read on the way"
        for name, match in matches
        if match["scheme"].lower() == "http" and match["host"].lower() not in LOOPBACK
    ]
