"""Says to which layer of a worker a moment of CPU time belongs: Trio, Quart, HTTP, the SQL driver, signatures, ….

The innermost function of the stack that belongs to a layer decides. Functions of the standard library belong to their
caller, and so does native code, whose line tells what it is.
"""

import linecache
from collections.abc import Iterator
from types import CodeType, FrameType

HTTP, QUART, TRIO, DRIVER, OWN = "HTTP", "Quart", "Trio", "driver", "own"
SIGNATURE, JSON, LOG, THREADS, REST = "signature", "JSON", "log", "threads", "rest"
LAYERS = (HTTP, QUART, TRIO, DRIVER, OWN, SIGNATURE, JSON, LOG, THREADS, REST)

# The first part that a file's path contains decides.
_PATHS = {
    "/sso/core/keys.py": SIGNATURE,
    "/cryptography/": SIGNATURE,
    "/json/": JSON,
    "/sso/core/canonical_json": JSON,
    "/sso/log": LOG,
    "/sso/telemetry/": LOG,
    "/sso/web/access_log.py": LOG,
    "/structlog/": LOG,
    "/prometheus_client/": LOG,
    "/sso/db/": DRIVER,
    "/asyncpg/": DRIVER,
    "/asyncio/": DRIVER,
    "/trio_asyncio/": DRIVER,
    "/sso/serve/": HTTP,
    "/httptools/": HTTP,
    "/sso/web/fast_quart/": QUART,
    "/quart": QUART,
    "/werkzeug/": QUART,
    "/trio/": TRIO,
    "/outcome/": TRIO,
    "/scripts/benchmarks/": REST,
    "/sso/": OWN,
    "/jinja2/": OWN,  # its pages
    "/pydantic": OWN,  # its models
}
_LINES = {"orjson.": JSON, "json.": JSON, "_signature(": SIGNATURE}

_by_code: dict[CodeType, str] = {}
_by_line: dict[tuple[CodeType, int], str] = {}


def layer_of(frame: FrameType | None) -> str:
    """Returns the layer of the code that runs in this frame."""
    if frame is not None and (layer := _layer_of_line(frame)):
        return layer
    return next((layer for code in _codes(frame) if (layer := _layer_of_code(code))), REST)


def _codes(frame: FrameType | None) -> Iterator[CodeType]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def _layer_of_code(code: CodeType) -> str:
    if code not in _by_code:
        path = code.co_filename
        _by_code[code] = next((layer for part, layer in _PATHS.items() if part in path), "")
    return _by_code[code]


def _layer_of_line(frame: FrameType) -> str:
    """Returns the layer of the native function that the line calls, "" if the line names none."""
    place = frame.f_code, frame.f_lineno or 0
    if place not in _by_line:
        line = linecache.getline(place[0].co_filename, place[1])
        _by_line[place] = next((layer for part, layer in _LINES.items() if part in line), "")
    return _by_line[place]
