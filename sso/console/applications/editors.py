"""Reads the JSON fields of the editors."""

from typing import Any

import orjson

from sso.console.json_fields import read_condition, read_object

SCHEMA_SECTIONS = ("public_data", "private_data", "secret_data", "login")


def json_text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() if value else ""


def schema_body(form: dict[str, str]) -> dict[str, Any]:
    return {name: read_object(form[name], name) for name in SCHEMA_SECTIONS if name in form} | override(form)


def role_body(form: dict[str, str]) -> dict[str, Any]:
    limit = form.get("user_limit", "").strip() or "0"
    return {
        "description": form.get("description", "").strip(),
        "default": "default" in form,
        "params": form.get("params", "").strip(),
        "user_limit": int(limit) if limit.isascii() and limit.isdecimal() and len(limit) < 10 else limit,
        "condition": read_condition(form.get("condition", ""), "condition"),
        "meta": read_object(form.get("meta", ""), "meta"),
        **override(form),
    }


def assertions_body(form: dict[str, str]) -> dict[str, Any]:
    lines = [line.strip() for line in form.get("assertions", "").splitlines()]
    return {"assertions": [line for line in lines if line], **override(form)}


def override(form: dict[str, str]) -> dict[str, Any]:
    return {"override": True} if "override" in form else {}
