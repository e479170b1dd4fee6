"""The pages of the things that entries of the audit trail are about."""

from typing import Any
from urllib.parse import quote

from sso.console.visit import ConsoleVisit

# The kind of an operation, such as ``user`` in ``user.save`` → the operation that shows the thing, and its page.
_PAGES = {
    "application": ("/applications/<application_id>", "/console/applications/{target}"),
    "schema": ("/schemas/<application_id>", "/console/applications/{target}/schema"),
    "identity_provider": ("/identity-providers/<provider_id>", "/console/identity-providers/{target}"),
    "webhook": ("/webhooks/<webhook_id>", "/console/webhooks/{target}"),
    "project": ("/projects/<project_id>", "/console/projects/{target}/settings"),
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
    return page.format(target=quote(entry["target"], safe="")) if visit.may("GET", operation) else ""
