"""Redirects between our own pages."""

import re

from quart import Response

DEFAULT_PATH = "/account"
MAX_PATH = 4096
# One slash and then neither a slash nor a backslash, encoded or not: two of them would begin another host.
LOCAL_PATH = re.compile(r"/(?!%(?:2[Ff]|5[Cc]))(?:[A-Za-z0-9_.~?&=%+:,@-][A-Za-z0-9/_.~?&=%+:,@-]*)?", re.ASCII)


def safe_next(path: object) -> str:
    """Returns the path to continue at after sign-in, or the account page if ``path`` is not a path of this server."""
    if isinstance(path, str) and len(path) <= MAX_PATH and LOCAL_PATH.fullmatch(path):
        return path
    return DEFAULT_PATH


def see_other(path: str) -> Response:
    """Redirects after a form with 303: the browser then sends GET, and a reload does not send the form again."""
    return Response(b"", 303, {"Location": path}, content_type="text/plain; charset=utf-8")
