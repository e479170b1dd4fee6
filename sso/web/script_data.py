"""Data for scripts, in a ``<script type="application/json">`` of a page."""

from typing import Any

import orjson
from markupsafe import Markup

# The content of a script element is not unescaped, so characters that could end it are written as JSON escapes.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def script_data(value: Any) -> Markup:
    return Markup(orjson.dumps(value).decode().translate(_ESCAPES))  # noqa: S704 - escaped above
