"""The explanation of a rule in lines for people."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any


def explained(login: str, found: dict[str, Any]) -> Iterator[str]:
    if not found["held"]:
        yield f"{login} does not have {found['rule']}:"
        for reason in found["reasons"]:
            yield f"  {reason['text']}{_compared(reason)}{_until(reason, 'ended')}"
        return
    yield f"{login} has {found['rule']}{_params(found)}{_until(found)}:"
    for source in found["sources"]:
        yield f"  {_source(source)}{_params(source)}{_until(source)}"
        for by in source.get("by", ()):
            yield f"    {_by(by)}{_compared(by)}{_until(by)}"


def _source(source: dict[str, Any]) -> str:
    match source["layer"]:
        case "schema":
            return "the application's schema gives it to everybody"
        case "own":
            return "the user's own data"
    return f"role {source['role']}"


def _by(by: dict[str, Any]) -> str:
    match by["kind"]:
        case "assignment":
            return "assigned"
        case "default":
            return "by default, as everybody has it"
        case "condition":
            return "its condition holds"
        case "group":
            member = by.get("member", "")
            how = "" if not member else ", as an added user" if member == "added" else f", by the condition {member}"
            return f"granted by the project {by['project_id']} to the group {by.get('group', by['group_id'])}{how}"
    return f"given in the project {by['project_id']}" + ("" if by["at"] == "project" else f" at {by['at']}")


def _params(found: dict[str, Any]) -> str:
    return f" with {','.join(found['params'])}" if found.get("params") else ""


def _until(found: dict[str, Any], word: str = "until") -> str:
    if not found.get("expired"):
        return ""
    return f", {word} {datetime.fromtimestamp(found['expired'], UTC):%Y-%m-%d %H:%M:%SZ}"


def _compared(found: dict[str, Any]) -> str:
    if not found.get("compared"):
        return ""
    return f" ({'; '.join(_one(item) for item in found['compared'])})"


def _one(item: dict[str, Any]) -> str:
    asked = f"{item['member']} {item['asked']}"
    if item["holds"]:
        return asked
    return f"{asked}: no" + (f", it is {item['found']}" if isinstance(item["found"], str) else "")
