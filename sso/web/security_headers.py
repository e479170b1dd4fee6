"""Headers of every answer."""

from collections.abc import Sequence

from werkzeug.datastructures import Headers

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# No script at all: every page is plain HTML.
_PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action {}; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"


def page_policy(form_targets: Sequence[str] = ()) -> str:
    """``form_targets``: where else a form of the page may lead, by the redirects that follow it."""
    return _PAGE_POLICY.format(" ".join(("'self'", *form_targets)))


def page_headers(*, https: bool) -> tuple[tuple[str, str], ...]:
    # With "no-referrer" browsers send "Origin: null" with a form, and its origin could not be checked.
    special = {
        "Content-Security-Policy": page_policy(),
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
    return _all(special, https)


def data_headers(*, https: bool) -> tuple[tuple[str, str], ...]:
    return _all({"Content-Security-Policy": _DATA_POLICY, "Referrer-Policy": "no-referrer"}, https)


def _all(special: dict[str, str], https: bool) -> tuple[tuple[str, str], ...]:
    lasting = {"Strict-Transport-Security": "max-age=31536000"} if https else {}
    return tuple((_ALWAYS | special | {"Cache-Control": "no-store"} | lasting).items())


class SecurityHeaders:
    """What the route set itself stays."""

    def __init__(self, *, https: bool) -> None:
        self._page = [(name.lower(), (name, value)) for name, value in page_headers(https=https)]
        self._data = [(name.lower(), (name, value)) for name, value in data_headers(https=https)]

    def add(self, headers: Headers) -> None:
        page = headers.get("Content-Type", "").startswith("text/html")
        present = {name.lower() for name, _ in headers}
        wanted = self._page if page else self._data
        # Not by `add`, which would look at each again: they are our own.
        headers._list += [pair for name, pair in wanted if name not in present]
