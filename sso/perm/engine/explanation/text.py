"""The explanation of a rule as sentences, for the command line and the console."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from sso.perm.engine.time_window_text import change_text, moment_text


class ExplanationLine(NamedTuple):
    level: int  # 0: a source or a reason; 1: why the user has that source
    text: str
    about: Mapping[str, Any] = MappingProxyType({})  # the part of the explanation, with the role that it is about


def explanation_lines(explanation: dict[str, Any]) -> Iterator[ExplanationLine]:
    """Yields the sources of a rule that the user has, or the reasons why the user does not have it."""
    if not explanation["held"]:
        for reason in explanation["reasons"]:
            yield ExplanationLine(0, f"{reason['text']}{_comparisons(reason)}{end_text(reason, 'ended')}", reason)
        return
    for source in explanation["sources"]:
        yield ExplanationLine(0, f"{_source(source)}{params_text(source)}{end_text(source)}", source)
        for grant in source.get("by", ()):
            about = {"role": source["role"], **grant}
            yield ExplanationLine(1, f"{_grant(grant)}{_comparisons(grant)}{end_text(grant)}", about)


def params_text(entry: dict[str, Any]) -> str:
    return f" with {','.join(entry['params'])}" if entry.get("params") else ""


def end_text(entry: dict[str, Any], word: str = "until") -> str:
    if not entry.get("expired"):
        return ""
    return f", {word} {moment_text(entry['expired'])}"


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


def _comparisons(entry: dict[str, Any]) -> str:
    if not entry.get("compared"):
        return ""
    return f" ({'; '.join(comparison_text(item) for item in entry['compared'])})"


def comparison_text(item: dict[str, Any]) -> str:
    if item["member"].rpartition(".")[2] == "time":
        return _time_text(item)
    condition = f"{item['member']} {item['asked']}"
    if item["holds"]:
        return condition
    return f"{condition}: no" + (f", it is {item['found']}" if isinstance(item["found"], str) else "")


def _time_text(item: dict[str, Any]) -> str:
    place = item["member"].removesuffix("time").rstrip(".")
    text = change_text(item["asked"], is_open=item["holds"], change=item["found"])
    return f"{place}: {text}" if place else text
