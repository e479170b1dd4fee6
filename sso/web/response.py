"""Responses with data that is known as a whole: JSON and pages."""

from collections.abc import Mapping
from typing import Any

import orjson
from quart import Response
from quart.wrappers.response import DataBody
from werkzeug.datastructures import Headers

JSON_TYPE = "application/json"


def reply(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return reply_json_bytes(orjson.dumps(data), status, headers)


def reply_json_bytes(data: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return DataResponse(data, JSON_TYPE, status, headers)


class DataResponse(Response):
    """Made without the constructors of Quart and Werkzeug, which parse and search headers that are known here."""

    def __init__(self, data: bytes, content_type: str, status: int, headers: Mapping[str, str] | None) -> None:
        """``headers`` has neither the type nor the length."""
        self.timeout = ...
        self.headers = Headers(headers)
        self.headers._list += [("Content-Type", content_type), ("Content-Length", str(len(data)))]
        if status == 200:
            self._status, self._status_code = "200 OK", 200
        else:
            self.status = status
        self.response = DataBody(data)
