"""The pages of the things that entries of the audit trail are about."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sso.console.visit import ConsoleVisit
from sso.core.path_ids import from_path_id, path_id

# The kind of an operation, such as ``user`` in ``user.save`` → the operation that shows the thing, and its page.
_PAGES = {
    "brand": ("/brand", "/console/branding"),
    "application": ("/applications/<application_id>", "/console/applications/{target}"),
    "schema": ("/schemas/<application_id>", "/console/applications/{target}/schema"),
    "identity_provider": ("/identity-providers/<provider_id>", "/console/identity-providers/{target}"),
    "webhook": ("/webhooks/<webhook_id>", "/console/webhooks/{target}"),
    "project": ("/projects/<project_id>", "/console/projects/{target}/settings"),
    "role": ("/roles/<application_id>/<name>", "/console/applications/{first}/roles/{second}"),
    "permissions": ("/applications/<application_id>", "/console/applications/{first}/users/{second}"),
    "assertions": ("/applications/<application_id>/assertions", "/console/applications/{target}/assertions"),
    "group": ("/groups/<group_id>", "/console/projects/{project}/groups/{target}"),
    "membership": ("/projects/<project_id>", "/console/projects/{target}"),
    "client": ("/clients/<client_id>", "/console/clients/{target}"),
    "user": ("/users/<user_id>", "/console/users/{target}"),
}


def target_path(visit: ConsoleVisit, entry: dict[str, Any]) -> str:
    """Returns the page of the target, or "" if there is none or the administrator may not open it."""
    kind = entry["operation"].partition(".")[0]
    if kind not in _PAGES or not entry["target"]:
        return ""
    operation, page = _PAGES[kind]
    first, _, second = entry["target"].partition("/")  # for a role, or the permissions of a user: the application
    target = path_id(entry["target"]) if kind == "client" else entry["target"]
    names = {"target": target, "first": first, "second": second, "project": entry["project_id"] or ""}
    if not visit.may("GET", operation) or any(f"{{{name}}}" in page and not value for name, value in names.items()):
        return ""
    return page.format_map({name: quote(value, safe="") for name, value in names.items()})


def history_path(visit: ConsoleVisit, ids: Mapping[str, Any]) -> str:
    """Returns the page with the audit entries of a record, given by the ids in the path of its own page; "" if none."""
    if not ids or not visit.may("GET", "/audit"):
        return ""
    *others, own = (from_path_id(str(value)) for value in ids.values())
    target = "/".join((*others, own)) if "application_id" in ids else own  # as the audit trail names a role
    return f"/console/audit?target={quote(target, safe='')}"
