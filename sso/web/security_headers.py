"""Security headers, which every response gets."""

from collections.abc import Sequence

from werkzeug.datastructures import Headers

_COMMON = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Scripts come from files of this service; inline scripts are forbidden.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:{}; {}form-action {}; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"


def page_policy(
    form_targets: Sequence[str] = (), image_origins: Sequence[str] = (), *, sends_requests: bool = False
) -> str:
    """Origins that a form of the page may redirect to, and origins of its images, in addition to our own.

    ``sends_requests``: scripts of the page send requests to this service.
    """
    images = "".join(f" {origin}" for origin in image_origins)
    requests = "connect-src 'self'; " if sends_requests else ""
    return _PAGE_POLICY.format(images, requests, " ".join(("'self'", *form_targets)))


def page_headers(*, https: bool) -> tuple[tuple[str, str], ...]:
    # With "no-referrer", browsers send "Origin: null" with forms, and their origin could not be checked.
    specific = {
        "Content-Security-Policy": page_policy(),
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
    return _with_common(specific, https)


def data_headers(*, https: bool) -> tuple[tuple[str, str], ...]:
    return _with_common({"Content-Security-Policy": _DATA_POLICY, "Referrer-Policy": "no-referrer"}, https)


def _with_common(specific: dict[str, str], https: bool) -> tuple[tuple[str, str], ...]:
    hsts = {"Strict-Transport-Security": "max-age=31536000"} if https else {}
    return tuple((_COMMON | specific | {"Cache-Control": "no-store"} | hsts).items())


class SecurityHeaders:
    """Adds the security headers that the route has not set itself."""

    def __init__(self, *, https: bool) -> None:
        self._page = [(name.lower(), (name, value)) for name, value in page_headers(https=https)]
        self._data = [(name.lower(), (name, value)) for name, value in data_headers(https=https)]

    def add(self, headers: Headers) -> None:
        pairs = headers._list
        present = {name.lower(): value for name, value in pairs}
        page = present.get("content-type", "").startswith("text/html")
        candidates = self._page if page else self._data
        # Not `headers.add`, which would validate each value: these are constants.
        pairs += [pair for name, pair in candidates if name not in present]
