"""The names by which the console shows people and records, each with its id and its page."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from msgspec import Struct, field

from sso.admin.rights import AdminRight
from sso.core.path_ids import path_id

# The right that an administrator needs to see the names of records of a kind.
RIGHTS: Mapping[str, AdminRight] = {
    "user": AdminRight.VIEW_USERS,
    "application": AdminRight.VIEW_APPLICATIONS,
    "project": AdminRight.VIEW_PROJECTS,
    "group": AdminRight.VIEW_PROJECTS,
    "client": AdminRight.VIEW_CLIENTS,
    "identity_provider": AdminRight.VIEW_CLIENTS,
    "webhook": AdminRight.MANAGE_WEBHOOKS,
}
_NOUNS = {"identity_provider": "provider"}  # the other nouns are those of the kinds
_PAGES = {
    "user": "/console/users/",
    "application": "/console/applications/",
    "project": "/console/projects/",
    "client": "/console/clients/",
    "identity_provider": "/console/identity-providers/",
    "webhook": "/console/webhooks/",
}  # a group has its page below that of its project


class RecordName(Struct, frozen=True):
    text: str  # the name; else what there is to say about the record, with its id
    title: str = ""  # the id, and the e-mail address of a user; "" if the text has the id
    page: str = ""  # "" if there is none, or the administrator may not open it


class RecordNames(Struct, frozen=True):
    found: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)  # (kind, id) -> name and detail
    visible: frozenset[str] = frozenset()  # the kinds whose names the administrator may see

    def __or__(self, other: "RecordNames") -> "RecordNames":
        return RecordNames({**self.found, **other.found}, self.visible | other.visible)

    def of(self, kind: str, id: object, stored: str = "") -> RecordName:
        """Returns how a page names the record. ``stored``: the name that is known of one that no longer exists."""
        key, noun = str(id), _NOUNS.get(kind, kind)
        if kind not in self.visible:
            return RecordName(f"{noun} {key}")
        page = f"{_PAGES[kind]}{quote(path_id(key), safe='')}" if kind in _PAGES else ""
        if (kind, key) not in self.found:
            return RecordName(stored, f"deleted {noun} {key}") if stored else RecordName(f"a deleted {noun} ({key})")
        name, detail = self.found[kind, key]
        if name == key:
            return RecordName(name, page=page)
        return RecordName(name, f"{detail}, {noun} {key}" if detail not in ("", name) else f"{noun} {key}", page)


def user_name(user: Mapping[str, Any]) -> str:
    """Returns the name of a user of the management API. A guest has no login, and may have no nickname."""
    return str(user["login"] or user["nick"] or user["user_id"])
