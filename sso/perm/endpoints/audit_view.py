"""Shows each reader of the audit trail only the values that the reader may read at the other endpoints.

An administrator of a project sees the author, the target and the time of every change. Values of a user's private
data, a schema or a role are left out if the other endpoints would refuse them with 403; ``hidden`` of an entry names
the members that were left out.
"""

from typing import Any

from sso.perm.authorization import secret_rights_of
from sso.perm.caller import Caller
from sso.perm.engine.required_rights import Operation, is_allowed
from sso.perm.engine.rights import META_NAMES, Rights
from sso.perm.stores.facts_reader import FactsReader

EVERYTHING = ("before", "after")

# Any one of these operations suffices to read the whole record.
_READ_OPERATIONS: dict[str, tuple[Operation, ...]] = {
    "schema": (Operation.SCHEMA_READ, Operation.SCHEMA_MODIFY),
    "role": (Operation.ROLE_READ, Operation.ROLE_LIST, Operation.ROLE_MODIFY),
    "access_key": (Operation.ACCESS_KEY,),
    "project": (Operation.PROJECT_GET, Operation.PROJECT_SAVE),
    "membership": (Operation.MEMBERSHIP_GET, Operation.MEMBERSHIP_SAVE),
    "group": (Operation.GROUP_GET, Operation.GROUP_SAVE),
}
_FULL_APPLICATION = ("settings", "service_meta")  # shown to callers who may save the application


class AuditView:
    def __init__(self, facts: FactsReader, caller: Caller, rights: Rights) -> None:
        self._facts = facts
        self._caller = caller
        self._rights = rights
        self._rights_at: dict[int, Rights] = {}  # with the secret rights at each application

    async def visible(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self._rights.is_root:
            return entries
        await self._load({entry["application_id"] for entry in entries} - {None})
        return [_without(entry, self._hidden(entry)) for entry in entries]

    async def _load(self, application_ids: set[int]) -> None:
        addresses = dict.fromkeys(application_ids, self._caller.address)
        for application_id, loaded in (await self._facts.load_many(self._caller.user_id, addresses)).items():
            if loaded is not None:
                self._rights_at[application_id] = Rights(self._rights.central, secret_rights_of(self._caller, loaded))

    def _hidden(self, entry: dict[str, Any]) -> tuple[str, ...]:
        """Returns the members of ``before`` and ``after`` that the reader may not see; `EVERYTHING` hides both as a
        whole."""
        rights = self._rights_at.get(entry["application_id"], self._rights)
        subject = entry["operation"].partition(".")[0]
        if subject == "permissions":
            own = entry["operation"] == "permissions.save" and entry["target"].endswith(f"/{self._caller.user_id}")
            return tuple(sorted(META_NAMES.keys() - rights.readable_sections(own=own)))
        if subject == "application":
            return () if _may(rights, Operation.APPLICATION_SAVE, entry) else _FULL_APPLICATION
        if any(_may(rights, operation, entry) for operation in _READ_OPERATIONS.get(subject, ())):
            return ()
        return EVERYTHING


def _may(rights: Rights, operation: Operation, entry: dict[str, Any]) -> bool:
    """The project of the entry decides: the application may belong to another project now."""
    return is_allowed(
        operation,
        rights,
        project_id=entry["project_id"],
        application_id=entry["application_id"],
        group_id=entry["target"],
    )


def _without(entry: dict[str, Any], hidden: tuple[str, ...]) -> dict[str, Any]:
    if hidden == EVERYTHING:
        left_out = {name for name in EVERYTHING if entry[name] is not None}
        changes: dict[str, Any] = dict.fromkeys(EVERYTHING)
    else:
        left_out = {name for part in EVERYTHING if isinstance(entry[part], dict) for name in entry[part]} & {*hidden}
        changes = {part: _pruned(entry[part], left_out) for part in EVERYTHING}
    return entry | changes | {"hidden": sorted(left_out)} if left_out else entry


def _pruned(value: Any, names: set[str]) -> Any:
    return {name: member for name, member in value.items() if name not in names} if isinstance(value, dict) else value
