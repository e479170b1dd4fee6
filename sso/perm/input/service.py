"""Read an application's ``settings`` and ``service_meta`` (§2.3), and tags."""

import re
from typing import Any

from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.validators import unique

MAX_NAME = 32
MAX_DESCRIPTION = 1024
MAX_TAGS = 10
MAX_KEY = 16 * 1024
MAX_SOURCES = 100

_NAME = re.compile(r"[A-Za-z0-9 _.]{0,32}")
_TAG = re.compile(r"[A-Za-z0-9:_]{1,64}")
_META = frozenset(("name", "description", "doc", "url", "env", "tags", "public_key", "private_key", "config_schema"))
_SETTINGS = frozenset(("gdpr", "restricted_domains"))
_GDPR = frozenset(("char_sources", "data_sources"))
_SOURCE = frozenset(("fetch", "remove"))


def read_application_fields(data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields of the record that were given, ready to store, and warnings about what is in them."""
    given: dict[str, Any] = {}
    warnings: list[str] = []
    if "name" in data:
        given["name"] = validators.word(data["name"], "name")
    if "description" in data:
        given["description"] = validators.text(data["description"], "description")
    if "project_id" in data:
        project_id = data["project_id"]  # null: in no project
        given["project_id"] = None if project_id is None else validators.text(project_id, "project_id", 64) or None
    if "settings" in data:
        given["settings"], warnings = read_settings(data["settings"])
    if "service_meta" in data:
        given["service_meta"], more = read_service_meta(data["service_meta"])
        warnings = warnings + more
    return given, warnings


def read_tags(value: object, where: str = "tags") -> list[str]:
    found: list[str] = []
    for at, item in enumerate(validators.an_array(value, where)):
        if not isinstance(item, str) or not _TAG.fullmatch(item):
            raise InvalidInput(f"{where}[{at}]: must be 1 to 64 letters, digits, colons or underscores")
        found.append(item)
    tags = list(unique(found))
    if len(tags) > MAX_TAGS:
        raise InvalidInput(f"{where}: must be at most {MAX_TAGS} tags")
    return tags


def read_service_meta(value: object, where: str = "service_meta") -> tuple[dict[str, Any], list[str]]:
    """The members that were given, and warnings. Lengths are counted in code points."""
    meta = validators.an_object(value, where)
    found = {name: _meta_member(name, item, f"{where}.{name}") for name, item in meta.items() if name in _META}
    return found, validators.unknown(meta, _META, where)


def _meta_member(name: str, value: object, where: str) -> Any:
    match name:
        case "name":
            if not isinstance(value, str) or not _NAME.fullmatch(value):
                raise InvalidInput(f"{where}: must be at most {MAX_NAME} letters, digits, spaces, underscores or dots")
            return value
        case "description":
            return validators.text(value, where, MAX_DESCRIPTION)
        case "doc" | "url":
            return validators.url(value, where)
        case "tags":
            return read_tags(value, where)
        case "public_key":
            if "PRIVATE KEY" in validators.text(value, where, MAX_KEY):
                raise InvalidInput(f"{where}: is a private key")
            return value
        case "private_key":
            return validators.text(value, where, MAX_KEY)
        case "config_schema":  # kept as it is: never fetched from, never run
            return validators.an_object(value, where)
    return validators.text(value, where, 64)


def read_settings(value: object, where: str = "settings") -> tuple[dict[str, Any], list[str]]:
    settings = validators.an_object(value, where)
    warnings = validators.unknown(settings, _SETTINGS, where)
    found: dict[str, Any] = {}
    if "restricted_domains" in settings:
        found["restricted_domains"] = validators.domains(settings["restricted_domains"], f"{where}.restricted_domains")
    if "gdpr" in settings:
        found["gdpr"], more = _read_gdpr(settings["gdpr"], f"{where}.gdpr")
        warnings += more
    return found, warnings


def _read_gdpr(value: object, where: str) -> tuple[dict[str, Any], list[str]]:
    gdpr = validators.an_object(value, where)
    warnings = validators.unknown(gdpr, _GDPR, where)
    found: dict[str, Any] = {}
    if "char_sources" in gdpr:
        here = f"{where}.char_sources"
        items = validators.an_array(gdpr["char_sources"], here, MAX_SOURCES)
        found["char_sources"] = [_address(item, f"{here}[{at}]") for at, item in enumerate(items)]
    if "data_sources" in gdpr:
        here = f"{where}.data_sources"
        found["data_sources"] = []
        for at, item in enumerate(validators.an_array(gdpr["data_sources"], here, MAX_SOURCES)):
            source = validators.an_object(item, f"{here}[{at}]")
            warnings += validators.unknown(source, _SOURCE, f"{here}[{at}]")
            read = {
                name: _address(source[name], f"{here}[{at}].{name}") for name in ("fetch", "remove") if name in source
            }
            found["data_sources"].append(read)
    return found, warnings


def _address(value: object, where: str) -> str:
    if not validators.url(value, where):
        raise InvalidInput(f"{where}: must not be empty")
    return str(value)
