"""The undo of deletions: a record is created again from the values that its entry has.

What the deletion took away besides is not restored, and the page says so: secrets, what clients were granted, links of
users to a provider, assignments of a role, and the roles that a project gave to a group.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sso.admin.permission_bodies import NewGroup
from sso.console.audit.undo import Undo, Values
from sso.oauth.clients.record import EXPORTED_IF_SET, ClientRecord
from sso.upstream.provider_record import ProviderChanges

ROLE, GROUP, PROJECT = "/roles/<application_id>/<name>", "/groups/<group_id>", "/projects/<project_id>"
CLIENT, PROVIDER = "/clients/<client_id>", "/identity-providers/<provider_id>"
PROVIDER_FIELDS = ProviderChanges.model_fields.keys() - {"id", "client_secret"}
_CLIENT_FIELDS = ClientRecord.model_fields.keys() - {"client_secret", "client_secret_expires_at"}


def role_variables(target: str) -> dict[str, str]:
    application_id, _, name = target.partition("/")
    return {"application_id": application_id, "name": name}


def _undo_deleted_role(target: str, before: Values, _after: Values) -> Undo:
    variables = role_variables(target)
    body = {"application_id": int(variables["application_id"]), **before}
    note = "Users who had the role by assignment do not get it back: assign it again."
    return Undo("POST", "/roles", {}, body, None, read=ROLE, read_variables=variables, note=note)


def _undo_deleted_group(target: str, before: Values, _after: Values) -> Undo | None:
    body = {name: value for name, value in before.items() if name in NewGroup.model_fields}
    if "project_id" not in body or "title" not in body:
        return None
    note = (
        "The group gets its id, users and conditions back. The roles that the project gave to it, and the roles of "
        "members at it, do not come back: the entries project.cascade and membership.cascade before this one have them."
    )
    variables = {"group_id": target}
    return Undo("POST", "/groups", {}, body | variables, None, read=GROUP, read_variables=variables, note=note)


def undo_removed_project(target: str, _before: Values, _after: Values) -> Undo:
    """A project that is deleted is marked as removed, with everything that belongs to it."""
    return Undo(
        "POST",
        f"{PROJECT}/restore",
        {"project_id": target},
        {},
        {"removed": True},
        read=PROJECT,
        shown={"removed": False},
        note="The project comes back with its members, groups and applications, and with the rights that it gave.",
    )


def _undo_deleted_client(target: str, before: Values, _after: Values) -> Undo | None:
    """The client has its values back, except its secret: it gets a new one."""
    if not {"profile", "redirect_uris", "secrets"} <= before.keys():
        return None
    body = {name: value for name, value in before.items() if _is_given(name, value, _CLIENT_FIELDS)}
    note = "What the client was granted does not come back: users sign in to it again."
    if before["secrets"]:
        note += (
            " Its secret is not in the audit trail, so the client gets a new one. It is shown once, on the next page;"
            " until you enter it where the client runs, nobody can sign in there."
        )
    variables = {"client_id": target}
    return Undo(
        "POST",
        "/clients",
        {},
        body | variables,
        None,
        read=CLIENT,
        read_variables=variables,
        has_dry_run=False,
        note=note,
    )


def _undo_deleted_provider(target: str, before: Values, _after: Values) -> Undo | None:
    """A provider whose secret is lost comes back disabled: its sign-in would fail."""
    if "kind" not in before:
        return None
    body = {name: value for name, value in before.items() if _is_given(name, value, ProviderChanges.model_fields)}
    note = "The links of users to the provider do not come back: users link their accounts again."
    if before.get("secret_id") or before.get("client_secret"):
        body["disabled"] = True
        note += (
            " Its secret is not in the audit trail, so the provider comes back disabled. Enter the secret on its page,"
            " then enable it."
        )
    variables = {"provider_id": target}
    return Undo(
        "POST",
        "/identity-providers",
        {},
        body | {"id": target},
        None,
        read=PROVIDER,
        read_variables=variables,
        has_dry_run=False,
        note=note,
    )


def _is_given(name: str, value: Any, fields: Any) -> bool:
    """Whether a field of a deleted record is one of a new record, and has a value that is not the default."""
    if name not in fields or value is None:
        return False
    return bool(value) or (name not in EXPORTED_IF_SET and value is False)


Builder = Callable[[str, Values, Values], Undo | None]  # arguments: the target, and the values before and after
OF_DELETION: Mapping[str, Builder] = {
    "role.delete": _undo_deleted_role,
    "group.delete": _undo_deleted_group,
    "client.delete": _undo_deleted_client,
    "identity_provider.delete": _undo_deleted_provider,
}
