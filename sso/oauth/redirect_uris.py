"""The one judge of redirect URIs.

A browser and a URL library do not read the same string the same way (a backslash, a tab, a user-info part), and a code
sent to the wrong place is an account given away. So nothing is parsed leniently here: a string is matched against a
grammar that leaves no two ways to read it, and the very string that was judged is the one that is used.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote_plus

LONGEST = 2048
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
NO_ADDRESS = (
    "redirect_uri must be an absolute http or https address of at most 2,048 characters, without fragment and user-info"
)
OWN_PARAMETERS = frozenset({"code", "state", "error", "error_description"})

# Printable ASCII without \ " < > ^ ` { | } and #. A percent sign stands for a byte, and not for a control character.
_CHARACTER = r"(?:[!$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]|%(?:[2-6][0-9A-Fa-f]|7[0-9A-Ea-e]|[89A-Fa-f][0-9A-Fa-f]))"
_URI = re.compile(
    r"(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://"
    r"(?P<host>[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
    rf"(?P<rest>(?:[/?]{_CHARACTER}*)?)",
    re.ASCII,
)


@dataclass(frozen=True)
class Redirect:
    """A redirect URI that was found to be the client's own. There is no other way to make one than the judge below."""

    uri: str
    origin: str

    def answer(self, **parameters: str | bytes | None) -> str:
        """The URI with our parameters after its own."""
        added = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value is not None)
        if not added:
            return self.uri
        if "?" not in self.uri:
            return f"{self.uri}?{added}"
        return self.uri + ("" if self.uri.endswith(("?", "&")) else "&") + added


def redirect_of(uri: str, hosts: Sequence[str], uris: Sequence[str] = (), *, any_http: bool = False) -> Redirect | None:
    """None unless it is an address of the client."""
    found = match_redirect_uri(uri, hosts, uris, any_http=any_http)
    return found if isinstance(found, Redirect) else None


def match_redirect_uri(
    uri: str, hosts: Sequence[str], uris: Sequence[str] = (), *, any_http: bool = False
) -> Redirect | str:
    """The address if it is one of the client's, otherwise why it is not.

    ``hosts`` are its hosts, ``http://host`` for one without TLS; ``uris`` its exact addresses, if it lists any;
    ``any_http``: this service itself has no TLS, so nothing is lost by answering without.
    """
    if len(uri) > LONGEST or (match := _URI.fullmatch(uri)) is None:
        return NO_ADDRESS
    scheme, host, port = match["scheme"].lower(), match["host"].lower(), match["port"]
    if port is not None and int(port) > 65535:
        return NO_ADDRESS
    if _parameters(match["rest"]) & OWN_PARAMETERS:
        return "redirect_uri: its query must not have code, state, error or error_description"
    plain, insecure = f"{host}", f"http://{host}"
    if hosts and plain not in hosts and insecure not in hosts:
        return "redirect_uri: the host is not one of the client's redirect_hosts"
    if scheme == "http" and not (any_http or host in LOOPBACK or insecure in hosts):
        return "redirect_uri: must be https"
    if uris:
        if uri not in uris and not any(_same_but_port(uri, listed) for listed in uris):
            return "redirect_uri is not one of the client's redirect_uris"
    elif not hosts:
        return "the client has neither redirect_hosts nor redirect_uris"
    return Redirect(uri, f"{scheme}://{host}" + (f":{port}" if port else ""))


def match_post_logout_redirect_uri(
    uri: str, hosts: Sequence[str], uris: Sequence[str], *, any_http: bool
) -> Redirect | None:
    """Where a site may send somebody who has signed out: no code travels there, so its own origin suffices."""
    found = redirect_of(uri, hosts, any_http=any_http) if hosts else _judge_by_origin(uri, uris, any_http=any_http)
    if found is None or not uris or any(_origin(listed) == found.origin for listed in uris):
        return found
    return None


def _judge_by_origin(uri: str, uris: Sequence[str], *, any_http: bool) -> Redirect | None:
    match = _URI.fullmatch(uri)
    return redirect_of(uri, [match["host"].lower()], any_http=any_http) if match and uris else None


def _origin(uri: str) -> str:
    match = _URI.fullmatch(uri)
    if match is None:
        return ""
    return f"{match['scheme'].lower()}://{match['host'].lower()}" + (f":{match['port']}" if match["port"] else "")


def _same_but_port(uri: str, listed: str) -> bool:
    """A program on somebody's own machine gets whatever port is free (RFC 8252 section 7.3)."""
    ours, theirs = _URI.fullmatch(uri), _URI.fullmatch(listed)
    if ours is None or theirs is None or ours["host"].lower() not in LOOPBACK:
        return False
    return all(ours[part] == theirs[part] for part in ("scheme", "host", "rest"))


def _parameters(rest: str) -> set[str]:
    query = rest.partition("?")[2]
    return {unquote_plus(pair.partition("=")[0]) for pair in re.split("[&;]", query)}
