"""GET /docs/…: the documentation site.

Its pages have no inline scripts and styles (``scripts/documentation/strict_policy.py``), and nothing comes from another
host. Browsers ask for a page again each time, and get 304 while it is the same. Other files have a hash in their
address, or rarely change.
"""

import trio
from quart import Blueprint, Response, request

from sso.core.errors import NotFound
from sso.documentation.site import START, DocumentationSite, SiteFile
from sso.web.pages import page
from sso.web.redirects import see_other
from sso.web.security_headers import page_policy

PATH = "/docs"
MAX_NAME = 200
_PAGE = {"Cache-Control": "no-cache", "Content-Security-Policy": page_policy(sends_requests=True)}
# An SVG file may contain scripts, which would run if it were opened as a page.
_IMAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_FILE = {"Cache-Control": "public, max-age=3600", "Content-Security-Policy": _IMAGE_POLICY}


def documentation_routes(site: DocumentationSite) -> Blueprint:
    routes = Blueprint("documentation", __name__)

    @routes.get(PATH)
    async def without_slash() -> Response:
        return see_other(f"{PATH}/")

    @routes.get(f"{PATH}/")
    async def start() -> Response:
        return await show(START)

    @routes.get(f"{PATH}/<path:name>")
    async def show(name: str) -> Response:
        found = await trio.to_thread.run_sync(site.read, name) if len(name) <= MAX_NAME else None
        if found is not None:
            return _response(found)
        if await trio.to_thread.run_sync(site.is_built):
            raise NotFound
        return await page("api_docs/missing.html", status=404, page_title="Documentation", here="")

    return routes


def _response(found: SiteFile) -> Response:
    headers = {**(_PAGE if found.content_type.startswith("text/html") else _FILE), "ETag": found.etag}
    tags = [tag.strip().removeprefix("W/") for tag in request.headers.get("If-None-Match", "").split(",")]
    if found.etag in tags or "*" in tags:
        return Response(b"", 304, headers)
    return Response(found.content, 200, headers, content_type=found.content_type)
