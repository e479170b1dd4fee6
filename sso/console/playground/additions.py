"""Adds something to a document that is edited by forms. The document stays what `sso apply` takes."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from sso.core.field_errors import FieldError
from sso.perm.engine.rules import MAX_DEPTH, is_rule

Fields = Mapping[str, str]
Members = dict[str, Any]


def add(document: Members, kind: str, fields: Fields) -> None:
    """Changes the document. Raises FieldError that names the field of the form."""
    if kind not in ADDITIONS:
        raise FieldError(("add",), f"expected one of {', '.join(ADDITIONS)}")
    try:
        ADDITIONS[kind](document, fields)
    except (AttributeError, KeyError, TypeError):  # the document has other types there
        raise FieldError(("document",), "nothing can be added before the document is correct") from None


def as_text(document: Members) -> str:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _person(document: Members, fields: Fields) -> None:
    login = _required(fields, "new_login")
    people = document.setdefault("users", [])
    if any(person["login"] == login for person in people):
        raise FieldError(("new_login",), "is in the document already")
    tags = _words(fields, "new_tags")
    people.append({"login": login} | ({"tags": tags} if tags else {}))


def _rule(document: Members, fields: Fields) -> None:
    """A rule that nobody has by default."""
    schemas = document.setdefault("schemas", {})
    schema = schemas.setdefault(_application_id(document, fields), {})
    _put(schema.setdefault("private_data", {}), _required(fields, "new_rule"), {"value": False}, "new_rule")


def _role(document: Members, fields: Fields) -> None:
    name, rules = _required(fields, "new_role"), _words(fields, "new_role_rules")
    roles = document.setdefault("roles", {}).setdefault(_application_id(document, fields), [])
    if any(role["name"] == name for role in roles):
        raise FieldError(("new_role",), "is in the document already")
    if not rules:
        raise FieldError(("new_role_rules",), "expected at least one rule")
    tree: Members = {}
    for rule in rules:
        _put(tree, rule, {"value": True}, "new_role_rules")
    condition = {"condition": {"tag": tag}} if (tag := fields.get("new_role_tag", "").strip()) else {}
    roles.append({"name": name, **condition, "meta": {"private_data": tree}})


def _assignment(document: Members, fields: Fields) -> None:
    login, role = _required(fields, "given_to"), _required(fields, "given_role")
    application_id = int(_application_id(document, fields))
    records = document.setdefault("permissions", [])
    for record in records:
        if (record["user_id"], record["application_id"]) == (login, application_id):
            break
    else:
        record = {"user_id": login, "application_id": application_id, "data": {}}
        records.append(record)
    given = record["data"].setdefault("roles", [])
    if role in given:
        raise FieldError(("given_role",), "this user has the role already")
    given.append(role)


def _group(document: Members, fields: Fields) -> None:
    """A group of the application's project: everybody with a tag has a role. A missing project is created."""
    title, role = _required(fields, "group_title"), _required(fields, "group_role")
    tag = _required(fields, "group_tag")
    application_id = _application_id(document, fields)
    project = _project(document, int(application_id))
    project_id = project["title"].lower().replace(" ", "_")
    group_id = hashlib.sha256(f"{project_id}:{title}".encode()).hexdigest()[:24]
    groups = document.setdefault("groups", [])
    if any(group["group_id"] == group_id for group in groups):
        raise FieldError(("group_title",), "is in the document already")
    conditions = [{"title": tag, "condition": {"tag": tag}}]
    groups.append({"group_id": group_id, "project_id": project_id, "title": title, "conditions": conditions})
    services = project.setdefault("settings", {}).setdefault("services", {})
    entries = services.setdefault(application_id, {}).setdefault("groups", [])
    entries.append({"group_id": group_id, "role": role, "action": "grant"})


def _assertion(document: Members, fields: Fields) -> None:
    statement = _required(fields, "statement")
    application = _application(document, int(_application_id(document, fields)))
    assertions = application.setdefault("assertions", [])
    if statement in assertions:
        raise FieldError(("statement",), "is in the document already")
    assertions.append(statement)


ADDITIONS: Mapping[str, Callable[[Members, Fields], None]] = {
    "person": _person,
    "rule": _rule,
    "role": _role,
    "assignment": _assignment,
    "group": _group,
    "assertion": _assertion,
}


def _project(document: Members, application_id: int) -> Members:
    application = _application(document, application_id)
    projects: list[Members] = document.setdefault("projects", [])
    if "project_id" not in application:
        application["project_id"] = "studio"
    for project in projects:
        if project["title"].lower().replace(" ", "_") == application["project_id"]:
            return project
    projects.append({"title": application["project_id"]})
    return projects[-1]


def _application(document: Members, application_id: int) -> Members:
    applications: list[Members] = document.setdefault("applications", [])
    for application in applications:
        if application["application_id"] == application_id:
            return application
    applications.append({"application_id": application_id, "name": f"Application {application_id}"})
    return applications[-1]


def _application_id(document: Members, fields: Fields) -> str:
    """Returns the chosen application, or the only one. A document without any gets number 10."""
    chosen = fields.get("application_id", "").strip()
    known = [str(application["application_id"]) for application in document.get("applications", [])]
    if chosen and not (chosen.isascii() and chosen.isdecimal() and len(chosen) < 10):
        raise FieldError(("application_id",), "expected a number")
    if not chosen and len(known) > 1:
        raise FieldError(("application_id",), f"expected one of {', '.join(known)}")
    application_id = chosen or (known[0] if known else "10")
    _application(document, int(application_id))
    return application_id


def _put(tree: Members, rule: str, node: Members, field: str) -> None:
    *sections, name = rule.split(".")
    if len(sections) >= MAX_DEPTH:
        raise FieldError((field,), f"expected at most {MAX_DEPTH} parts")
    for section in sections:
        tree = tree.setdefault(section, {})
        if is_rule(tree):
            raise FieldError((field,), f"{section} is a rule, so it cannot have rules below it")
    if name in tree:
        raise FieldError((field,), f"{rule[:100]} is in the document already")
    tree[name] = node


def _required(fields: Fields, name: str) -> str:
    if not (text := fields.get(name, "").strip()):
        raise FieldError((name,), "is required")
    return text


def _words(fields: Fields, name: str) -> list[str]:
    return fields.get(name, "").replace(",", " ").split()
