"""Where the current request comes from, as people recognise it: its address and its browser."""

from typing import NamedTuple

from quart import g
from quart.globals import _cv_request

from sso.web.request import UnknownClient, client_address

_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


class RequestOrigin(NamedTuple):
    address: str
    device: str  # such as "Firefox on Linux"


def request_origin() -> RequestOrigin | None:
    """Returns None outside a request (a command or a background task), and if support makes it for a player."""
    if _cv_request.get(None) is None or g.get("impersonation"):
        return None
    try:
        address = str(client_address())
    except UnknownClient:
        address = ""
    return RequestOrigin(address, browser_label())


def browser_label() -> str:
    """Returns browser and operating system from the User-Agent header, such as "Firefox on Linux"."""
    agent = _cv_request.get().request.headers.get("User-Agent", "")[:1000]
    name = next((label for mark, label in _BROWSERS if mark in agent), "Browser")
    system = next((label for mark, label in _SYSTEMS if mark in agent), "")
    return f"{name} on {system}" if system else name
