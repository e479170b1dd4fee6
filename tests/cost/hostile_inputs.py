"""Hostile but well-formed inputs near the limits, made from the example of a body or from the fields of a form."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from sso.core.untrusted_json import MAX_LEVELS
from sso.web.body import MAX_FORM_FIELDS, BodyLimit

MAX_HEAD = 24 * 1024  # of the 32 kB that the server reads, for one header or the query
JSON_TYPE, FORM_TYPE = "application/json", "application/x-www-form-urlencoded"


class HostileInput(NamedTuple):
    name: str
    body: bytes = b""
    content_type: str = ""
    headers: Mapping[str, str] = {}
    query: str = ""


def without_body(names: list[str]) -> Iterator[HostileInput]:
    """Inputs for a request without a body, with these parameters of the query."""
    longest = (MAX_HEAD - 2000) // max(1, len(names))
    yield HostileInput("long query", query=urlencode(dict.fromkeys(names, "a" * longest)) or "q=" + "a" * longest)
    yield HostileInput("encoded query", query="&".join(f"{name}={'%C3%A9' * (longest // 6)}" for name in names))
    yield HostileInput("wildcards", query=urlencode({name: "%_" * min(100, longest // 6) for name in names}))
    yield HostileInput("many parameters", query="&".join(f"a{number}={number}" for number in range(100)))
    yield from headers_only()


def headers_only() -> Iterator[HostileInput]:
    yield HostileInput("cookies", headers={"Cookie": "; ".join(f"c{n}=" + "x" * 100 for n in range(190))})
    yield HostileInput("languages", headers={"Accept-Language": ", ".join(f"x{n};q=0.{n}" for n in range(2000))})
    yield HostileInput("accept", headers={"Accept": ", ".join(f"a/b{n};q=0.{n}" for n in range(1500))})
    token = ".".join(("e30" + "A" * 8000,) * 3)
    yield HostileInput("JWT", headers={"Authorization": f"Bearer {token}", "Service-Jwt": token[: MAX_HEAD // 4]})
    yield HostileInput("basic", headers={"Authorization": "Basic " + "QTpB" * (MAX_HEAD // 4)})


def json_bodies(example: Any, limit: BodyLimit) -> Iterator[HostileInput]:
    """Bodies of the size of the limit. The first ones resemble the example most."""
    body = dict(example) if isinstance(example, dict) else {}
    budget = limit.max_bytes - 4096
    strings = max(1, _count(body, str))
    yield _json("long strings", _replaced(body, "a" * (budget // strings)))
    repeated = _repeated(body, min(limit.max_values // 2, 20_000) // max(1, _count(body, object)), budget)
    if repeated != body:
        yield _json("long lists", repeated)
    yield _json("unknown field with many values", {**body, "more": [1] * (limit.max_values - 100)})
    yield _json("unknown members", {**body, **{f"m{number}": number for number in range(limit.max_values - 200)}})
    yield _json("deep", {**body, "more": _nested(MAX_LEVELS - 2)})
    yield _json("many deep values", {**body, "more": [_nested(MAX_LEVELS - 4)] * (limit.max_values // MAX_LEVELS - 4)})
    escaped = b'{"more":"' + b"\\u00e9" * (budget // 6) + b'"}'
    yield HostileInput("escapes", escaped, JSON_TYPE)
    yield _json("floats", {**body, "more": [0.1 + 1e-300] * (limit.max_values - 100)})


def form_bodies(fields: Mapping[str, str], max_bytes: int) -> Iterator[HostileInput]:
    """Forms of the size of the limit. ``fields`` has those that must keep their value, such as the CSRF token."""
    free = [name for name, value in fields.items() if not value]
    kept = {name: value for name, value in fields.items() if value}
    length = (max_bytes - 2048 - len(urlencode(kept))) // max(1, len(free))
    yield _form("long fields", {**kept, **{name: "a" * (length - len(name) - 2) for name in free}})
    encoded = urlencode(kept) + "".join(f"&{name}=" + "%C3%A9" * (length // 6 - 4) for name in free)
    yield HostileInput("encoded fields", encoded.encode(), FORM_TYPE)
    yield _form("many fields", {**fields, **{f"m{n}": "1" for n in range(MAX_FORM_FIELDS - len(fields) - 2)}})
    yield _form("nested JSON", {**kept, **{name: "[" * min(MAX_LEVELS, length // 2) for name in free}})


def path_of(rule: str, ids: Mapping[str, str]) -> str:
    """The path of a rule, with a known id or a long text for each variable."""
    parts = []
    for part in rule.split("/"):
        if part.startswith("<"):
            parts.append(quote(ids.get(part.strip("<>").rpartition(":")[2], "a" * 200)))
        else:
            parts.append(part)
    return "/".join(parts)


def _json(name: str, body: Any) -> HostileInput:
    return HostileInput(name, orjson.dumps(body), JSON_TYPE)


def _form(name: str, fields: Mapping[str, str]) -> HostileInput:
    return HostileInput(name, urlencode(fields).encode(), FORM_TYPE)


def _nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def _count(value: Any, kind: type) -> int:
    if isinstance(value, dict):
        return int(kind is object) + sum(_count(member, kind) for member in value.values())
    if isinstance(value, list):
        return int(kind is object) + sum(_count(member, kind) for member in value)
    return int(isinstance(value, kind))


def _replaced(value: Any, text: str) -> Any:
    """The value with another text in place of each string."""
    if isinstance(value, dict):
        return {name: _replaced(member, text) for name, member in value.items()}
    if isinstance(value, list):
        return [_replaced(member, text) for member in value]
    return text if isinstance(value, str) else value


def _repeated(value: Any, times: int, budget: int) -> Any:
    """The value with the first member of each list repeated."""
    if isinstance(value, dict):
        return {name: _repeated(member, times, budget) for name, member in value.items()}
    if isinstance(value, list) and value:
        return value[:1] * min(times, budget // (len(orjson.dumps(value[0])) + 1) // 2)
    return value
