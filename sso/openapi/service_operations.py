"""Describes the routes of the service itself: health, metrics, this document, files of pages."""

from sso.web.api_description import OBJECT, STRING, TEXT, ApiOperation, ApiParameter, ApiResponse, envelope, ok, page

TAG = "Service"
_NOT_MODIFIED = ApiResponse("The client has the current version.")
_IF_NONE_MATCH = ApiParameter("If-None-Match", "The ETag of the version that the client has.", "header")

OPERATIONS = (
    ApiOperation(
        "GET", "/healthz", TAG, "Check that the process runs", {200: ok("It runs.", envelope(), {"status": "OK"})}
    ),
    ApiOperation(
        "GET",
        "/readyz",
        TAG,
        "Check that requests should be sent here",
        {200: ok("Send requests.", envelope(), {"status": "OK"})},
        parameters=(ApiParameter("database", "1: the database must respond as well."),),
    ),
    ApiOperation(
        "GET",
        "/metrics",
        TAG,
        "Read the metrics",
        {200: ApiResponse("Metrics in the text format of Prometheus.", STRING, TEXT)},
        "Metrics are served at the address `SSO_METRICS_BIND` only. Elsewhere, the path does not exist (404).",
        errors=(404,),
    ),
    ApiOperation(
        "GET",
        "/openapi.json",
        TAG,
        "Read this document",
        {200: ok("An OpenAPI 3.1 document.", OBJECT, ETag="the version of the document"), 304: _NOT_MODIFIED},
        parameters=(_IF_NONE_MATCH,),
    ),
    ApiOperation(
        "GET",
        "/docs",
        TAG,
        "Open the documentation",
        {303: ApiResponse("The first page.", headers={"Location": "`/docs/`"})},
        is_page=True,
    ),
    page("/docs/", TAG, "Show the first page of the documentation", errors=(404,)),
    page("/docs/<path:name>", TAG, "Show a page or file of the documentation", errors=(404,)),
    page("/docs/api", TAG, "Show this document"),
    page("/docs/api/<operation_id>", TAG, "Show an operation of this document", errors=(404,)),
    ApiOperation(
        "GET",
        "/language",
        TAG,
        "Choose the language of pages",
        {303: ApiResponse("The page again.", headers={"Location": "the path of the page"})},
        parameters=(
            ApiParameter("lang", "A language of the service."),
            ApiParameter("back", "The path of the page to return to."),
        ),
        is_page=True,
    ),
    ApiOperation(
        "GET",
        "/brand/accent-<colour>.css",
        TAG,
        "Read the style sheet of an accent colour",
        {200: ApiResponse("A style sheet.", STRING, "text/css")},
        errors=(404,),
        is_page=True,
    ),
    ApiOperation(
        "GET",
        "/brand/theme-<name>.css",
        TAG,
        "Read the style sheet of the light or the dark theme",
        {200: ApiResponse("A style sheet.", STRING, "text/css")},
        errors=(404,),
        is_page=True,
    ),
    ApiOperation(
        "GET",
        "/brand/logo-<name>",
        TAG,
        "Read the logo",
        {200: ApiResponse("The image.", {}, "image/*")},
        errors=(404,),
        is_page=True,
    ),
    ApiOperation(
        "GET",
        "/static/<path:filename>",
        TAG,
        "Read a file of the pages",
        {200: ApiResponse("The file.", {}, "*/*"), 304: _NOT_MODIFIED},
        errors=(404,),
        is_page=True,
    ),
)
