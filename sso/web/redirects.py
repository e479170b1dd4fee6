"""Redirects between our own pages."""

import re
from urllib.parse import quote

from quart import Response

DEFAULT_PATH = "/account"
MAX_PATH = 4096
# One slash and then neither a slash nor a backslash, encoded or not: two of them would begin another host.
LOCAL_PATH = re.compile(r"/(?!%(?:2[Ff]|5[Cc]))(?:[A-Za-z0-9_.~?&=%+:,@-][A-Za-z0-9/_.~?&=%+:,@-]*)?", re.ASCII)
_NOT_IN_A_HEADER = re.compile(r"[^!-~]+")


def safe_next(path: object) -> str:
    """Returns the path to continue at after sign-in, or the account page if ``path`` is not a path of this server."""
    if isinstance(path, str) and len(path) <= MAX_PATH and LOCAL_PATH.fullmatch(path):
        return path
    return DEFAULT_PATH


def see_other(path: str) -> Response:
    """Redirects after a form with 303: the browser then sends GET, and a reload does not send the form again.

    The path may hold ids of the request, so characters that a header must not have are percent-encoded.
    """
    location = _NOT_IN_A_HEADER.sub(lambda match: quote(match[0], safe="", errors="replace"), path)
    return Response(b"", 303, {"Location": location}, content_type="text/plain; charset=utf-8")
