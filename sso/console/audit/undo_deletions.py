"""The undo of deletions: a record is created again from the values that its entry has.

With ``undo_of``, the operation also brings back what the deletion took away besides: secrets for some days, and who had
a role. What it does not restore, the page says: what clients were granted, and links of users to a provider.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from sso.admin.permission_bodies import NewGroup
from sso.audit.deleted_secret_store import UNDO_DAYS
from sso.console.audit.undo import Undo, Values
from sso.oauth.clients.record import EXPORTED_IF_SET, ClientRecord
from sso.upstream.provider_record import ProviderChanges

ROLE, GROUP, PROJECT = "/roles/<application_id>/<name>", "/groups/<group_id>", "/projects/<project_id>"
APPLICATION = "/applications/<application_id>"
CLIENT, PROVIDER = "/clients/<client_id>", "/identity-providers/<provider_id>"
PROVIDER_FIELDS = ProviderChanges.model_fields.keys() - {"id", "client_secret"}
_CLIENT_FIELDS = ClientRecord.model_fields.keys() - {"client_secret", "client_secret_expires_at"}


def role_variables(target: str) -> dict[str, str]:
    application_id, _, name = target.partition("/")
    return {"application_id": application_id, "name": name}


def undo_of_deletion(entry: Values, now: int) -> Undo | None:
    """Returns None if nothing restores the record. ``now`` is in Unix seconds."""
    build = _BUILDERS.get(entry["operation"])
    undo = build(entry["target"], entry["before"] or {}) if build else None
    if undo is None:
        return None
    if entry["operation"] not in _WITH_SECRETS:
        undo.body["undo_of"] = entry["id"]
        return undo
    return _with_secrets(undo, entry, are_kept=_age_days(entry, now) < UNDO_DAYS)


def _undo_deleted_role(target: str, before: Values) -> Undo:
    variables = role_variables(target)
    body = {"application_id": int(variables["application_id"]), **before}
    note = "The users who had the role by assignment have it again, until the same day, and so do the groups."
    return Undo("POST", "/roles", {}, body, None, read=ROLE, read_variables=variables, note=note)


def _undo_deleted_group(target: str, before: Values) -> Undo | None:
    body = {name: value for name, value in before.items() if name in NewGroup.model_fields}
    if "project_id" not in body or "title" not in body:
        return None
    note = "The group has its id, users and conditions again, the roles that the project gave to it, and its managers."
    variables = {"group_id": target}
    return Undo("POST", "/groups", {}, body | variables, None, read=GROUP, read_variables=variables, note=note)


def undo_removed_project(target: str, _before: Values, _after: Values) -> Undo:
    note = "The project comes back with its members, groups and applications, and with the rights that it gave."
    return _restored(PROJECT, "project_id", target, note)


def undo_removed_application(target: str, _before: Values, _after: Values) -> Undo:
    note = "The application comes back with its roles, users and keys, and with the roles that its project gave there."
    return _restored(APPLICATION, "application_id", target, note)


def _restored(path: str, variable: str, target: str, note: str) -> Undo:
    """A project or application that is deleted is marked as removed, with everything that belongs to it."""
    removed, restored, variables = {"removed": True}, {"removed": False}, {variable: target}
    return Undo("POST", f"{path}/restore", variables, {}, removed, read=path, shown=restored, note=note)


def _undo_deleted_client(target: str, before: Values) -> Undo | None:
    if not {"profile", "redirect_uris", "secrets"} <= before.keys():
        return None
    if before.get("registered_by"):  # an undo would make it a client of administrators
        return None
    body = {name: value for name, value in before.items() if _is_given(name, value, _CLIENT_FIELDS)}
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
        note="What the client was granted does not come back: users sign in to it again.",
    )


def _undo_deleted_provider(target: str, before: Values) -> Undo | None:
    if "kind" not in before:
        return None
    body = {name: value for name, value in before.items() if _is_given(name, value, ProviderChanges.model_fields)}
    return Undo(
        "POST",
        "/identity-providers",
        {},
        body | {"id": target},
        None,
        read=PROVIDER,
        read_variables={"provider_id": target},
        has_dry_run=False,
        note="The links of users to the provider do not come back: users link their accounts again.",
    )


def _with_secrets(undo: Undo, entry: Values, *, are_kept: bool) -> Undo:
    """The record has its secrets again while they are kept. Later a client gets a new one, and a provider is disabled:
    its sign-in would fail."""
    before = entry["before"]
    if not any(before.get(name) for name in ("secrets", "secret_id", "client_secret")):
        return undo
    if are_kept:
        note = f"{undo.note} Its secret is the same as before."
        return replace(undo, note=note, body=undo.body | {"undo_of": entry["id"]})
    if entry["operation"] == "client.delete":
        lost = (
            f"Its secret was kept for {UNDO_DAYS} days, so the client gets a new one. It is shown once, on the next "
            "page; until you enter it where the client runs, nobody can sign in there."
        )
        return replace(undo, note=f"{undo.note} {lost}")
    lost = (
        f"Its secret was kept for {UNDO_DAYS} days, so the provider comes back disabled. Enter the secret on its page, "
        "then enable it."
    )
    return replace(undo, note=f"{undo.note} {lost}", body=undo.body | {"disabled": True})


def _age_days(entry: Values, now: int) -> float:
    """An entry without a time was just written."""
    return (now - datetime.fromisoformat(entry["at"]).timestamp()) / 86400 if "at" in entry else 0


def _is_given(name: str, value: Any, fields: Any) -> bool:
    """Whether a field of a deleted record is one of a new record, and has a value that is not the default."""
    if name not in fields or value is None:
        return False
    return bool(value) or (name not in EXPORTED_IF_SET and value is False)


Builder = Callable[[str, Values], Undo | None]  # arguments: the target, and the values before the deletion
_BUILDERS: Mapping[str, Builder] = {
    "role.delete": _undo_deleted_role,
    "group.delete": _undo_deleted_group,
    "client.delete": _undo_deleted_client,
    "identity_provider.delete": _undo_deleted_provider,
}
_WITH_SECRETS = frozenset(("client.delete", "identity_provider.delete"))
