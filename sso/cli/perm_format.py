"""Formats the explanation of a rule as text."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any


def format_explanation(login: str, app_id: int, explanation: dict[str, Any]) -> Iterator[str]:
    if not explanation["held"]:
        yield f"{login} does not have {explanation['rule']} at application {app_id}:"
        for reason in explanation["reasons"]:
            yield f"  {reason['text']}{_comparisons(reason)}{_end(reason, 'ended')}"
        return
    yield f"{login} has {explanation['rule']}{_params(explanation)}{_end(explanation)}:"
    for source in explanation["sources"]:
        yield f"  {_source(source)}{_params(source)}{_end(source)}"
        for grant in source.get("by", ()):
            yield f"    {_grant(grant)}{_comparisons(grant)}{_end(grant)}"


def _source(source: dict[str, Any]) -> str:
    match source["layer"]:
        case "schema":
            return "the application's schema gives it to every user"
        case "own":
            return "the user's own data"
    return f"role {source['role']}"


def _grant(grant: dict[str, Any]) -> str:
    match grant["kind"]:
        case "assignment":
            return "assigned"
        case "default":
            return "by default: every user has this role"
        case "condition":
            return "its condition holds"
        case "group":
            member = grant.get("member", "")
            how = "" if not member else ", as an added user" if member == "added" else f", by the condition {member}"
            group = grant.get("group", grant["group_id"])
            return f"granted by the project {grant['project_id']} to the group {group}{how}"
    return f"given in the project {grant['project_id']}" + ("" if grant["at"] == "project" else f" at {grant['at']}")


def _params(entry: dict[str, Any]) -> str:
    return f" with {','.join(entry['params'])}" if entry.get("params") else ""


def _end(entry: dict[str, Any], word: str = "until") -> str:
    if not entry.get("expired"):
        return ""
    return f", {word} {datetime.fromtimestamp(entry['expired'], UTC):%Y-%m-%d %H:%M:%SZ}"


def _comparisons(entry: dict[str, Any]) -> str:
    if not entry.get("compared"):
        return ""
    return f" ({'; '.join(_comparison(item) for item in entry['compared'])})"


def _comparison(item: dict[str, Any]) -> str:
    condition = f"{item['member']} {item['asked']}"
    if item["holds"]:
        return condition
    return f"{condition}: no" + (f", it is {item['found']}" if isinstance(item["found"], str) else "")
