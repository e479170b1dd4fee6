"""GET /openapi.json, and pages that show it at /docs/api.

The document is built in a thread when it is first requested, and then kept as bytes.
"""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio
from msgspec import Struct
from quart import Blueprint, Response, request

from sso.admin.request import AdminRoute
from sso.core.errors import NotFound
from sso.web.pages import page
from sso.web.response import JSON_TYPE

if TYPE_CHECKING:
    from sso.openapi.viewer import DocumentViewer

PATH, VIEWER_PATH = "/openapi.json", "/docs/api"
OPERATION_PATH = f"{VIEWER_PATH}/<operation_id>"
# A page may send requests to this service, which carry a token that its reader has pasted, and to no other.
VIEWER_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
CACHE = {"Cache-Control": "public, max-age=60", "Access-Control-Allow-Origin": "*", "Vary": "Origin"}


class BuiltDocument(Struct, frozen=True):
    content: bytes
    etag: str


class OpenApiDocument:
    """The document of this service. A worker that nobody asks for it does not import what builds it."""

    def __init__(self, name: str, admin_routes: Callable[[], tuple[AdminRoute, ...]]) -> None:
        self._name = name
        self._admin_routes = admin_routes
        self._lock = trio.Lock()
        self._built: BuiltDocument | None = None
        self._viewer: DocumentViewer | None = None

    async def viewer(self) -> "DocumentViewer":
        """What the pages show. It is kept once somebody has opened one."""
        built = await self.get()
        async with self._lock:
            if self._viewer is None:
                self._viewer = await trio.to_thread.run_sync(self._read_viewer, built.content)
            return self._viewer

    async def get(self) -> BuiltDocument:
        async with self._lock:
            if self._built is None:
                self._built = await trio.to_thread.run_sync(self._build)
            return self._built

    def _read_viewer(self, content: bytes) -> "DocumentViewer":
        from sso.openapi.viewer import read_viewer  # not above: few workers need it

        return read_viewer(content)

    def _build(self) -> BuiltDocument:
        from sso.openapi.document import build_document  # not above: it imports every description

        content = build_document(self._name, self._admin_routes())
        return BuiltDocument(content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def openapi_routes(document: OpenApiDocument, base_url: str) -> Blueprint:
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

    async def show_page(title: str, operation: object = None) -> Response:
        policy = {"Content-Security-Policy": VIEWER_POLICY}
        return await page(
            "api_docs/page.html",
            page_title=title,
            headers=policy,
            here="",
            viewer=await document.viewer(),
            operation=operation,
            base_url=base_url,
        )

    @routes.get(VIEWER_PATH)
    async def overview() -> Response:
        return await show_page("API")

    @routes.get(OPERATION_PATH)
    async def operation(operation_id: str) -> Response:
        described = (await document.viewer()).operations.get(operation_id)
        if described is None:
            raise NotFound
        return await show_page(described.summary, described)

    return routes
