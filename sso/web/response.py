"""JSON responses."""

from collections.abc import Mapping
from typing import Any

import orjson
from quart import Response

JSON_TYPE = "application/json"


def reply(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return reply_json_bytes(orjson.dumps(data), status, headers)


def reply_json_bytes(data: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(data, status, dict(headers) if headers else None, content_type=JSON_TYPE)
