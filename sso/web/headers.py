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


def add_security_headers(headers: Headers, *, https: bool) -> None:
    """What the route set itself stays."""
    page = headers.get("Content-Type", "").startswith("text/html")
    for name, value in _ALWAYS.items():
        headers.setdefault(name, value)
    headers.setdefault("Content-Security-Policy", page_policy() if page else _DATA_POLICY)
    # With "no-referrer" browsers send "Origin: null" with a form, and its origin could not be checked.
    headers.setdefault("Referrer-Policy", "same-origin" if page else "no-referrer")
    headers.setdefault("Cache-Control", "no-store")
    if page:
        headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
    if https:
        headers.setdefault("Strict-Transport-Security", "max-age=31536000")
