"""GET /openapi.json, and its viewer at /docs/api.

The document is built in a thread when it is first requested, and then kept as bytes.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import trio
from quart import Blueprint, Response, request

from sso.admin.request import AdminRoute
from sso.web.language import _
from sso.web.pages import page
from sso.web.response import JSON_TYPE

PATH, VIEWER_PATH = "/openapi.json", "/docs/api"
# The viewer writes style attributes. Scripts come from our files only, and it reads the document from this server only.
VIEWER_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
CACHE = {"Cache-Control": "public, max-age=60", "Access-Control-Allow-Origin": "*", "Vary": "Origin"}


@dataclass(frozen=True)
class BuiltDocument:
    content: bytes
    etag: str


class OpenApiDocument:
    """The document of this service. A worker that nobody asks for it does not import what builds it."""

    def __init__(self, name: str, admin_routes: Callable[[], tuple[AdminRoute, ...]]) -> None:
        self._name = name
        self._admin_routes = admin_routes
        self._lock = trio.Lock()
        self._built: BuiltDocument | None = None

    async def get(self) -> BuiltDocument:
        async with self._lock:
            if self._built is None:
                self._built = await trio.to_thread.run_sync(self._build)
            return self._built

    def _build(self) -> BuiltDocument:
        from sso.openapi.document import build_document  # not above: it imports every description

        content = build_document(self._name, self._admin_routes())
        return BuiltDocument(content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def openapi_routes(document: OpenApiDocument) -> Blueprint:
    routes = Blueprint("openapi", __name__)

    @routes.get(PATH)
    async def show() -> Response:
        built = await document.get()
        headers = {**CACHE, "ETag": built.etag}
        if built.etag in [
            tag.strip().removeprefix("W/") for tag in request.headers.get("If-None-Match", "").split(",")
        ]:
            return Response(b"", 304, headers)
        return Response(built.content, 200, headers, content_type=JSON_TYPE)

    @routes.get(VIEWER_PATH)
    async def viewer() -> Response:
        policy = {"Content-Security-Policy": VIEWER_POLICY}
        return await page("api_docs.html", page_title=_("API"), headers=policy, here="")

    return routes
