"""What a caller may do: root, root rules, project access, and the secret rules of the application in question.

Rights are read from structure, never from rendered strings: ``list_short`` shows the same path of public and private
data as one entry, and a rule in public data is no root rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sso.perm.engine.compiled import Schema
from sso.perm.engine.effective import Effective
from sso.perm.engine.facts import OwnRecord
from sso.perm.engine.tree import overlaid_values
from sso.perm.names import CENTRAL_APPLICATION_ID, ROOT_ROLE

SELF, ALL, NONE = "self", "all", "none"
# Section of a user's schema → its word in secret_data.meta.
META_WORDS: Mapping[str, str] = {
    "roles": "roles",
    "private_data": "private",
    "public_data": "public",
    "secret_data": "secret",
    "login": "secret",  # login rules of a user are guarded like secret data
}
# §2.8: what holds where the schema says nothing.
META_DEFAULTS: Mapping[str, str] = {
    "roles.canRead": SELF,
    "roles.canWrite": NONE,
    "private.canRead": SELF,
    "private.canWrite": NONE,
    "public.canRead": ALL,
    "public.canWrite": NONE,
    "secret.canRead": NONE,
    "secret.canWrite": NONE,
}
APPLICATION_RULES = ("canCreateJwt", "canModifySchema", "canRead", "canReadSchema", "canSave", "canSeeRoleList")


@dataclass(frozen=True)
class SecretRights:
    """The application's secret_data, overlaid by the caller's own."""

    application: frozenset[str] = frozenset()  # of APPLICATION_RULES, those that are true
    meta: Mapping[str, str] = field(default_factory=lambda: dict(META_DEFAULTS))


def secret_rights(schema: Schema, own: OwnRecord, now: int) -> SecretRights:
    said: dict[str, Any] = overlaid_values(schema.secret_data, own.secret_data, "secret_data", now)
    application = frozenset(name for name in APPLICATION_RULES if said.get(f"secret_data.application.{name}") is True)
    meta = {}
    for name, default in META_DEFAULTS.items():
        value = said.get(f"secret_data.meta.{name}", default)
        meta[name] = value if value in (SELF, ALL) else NONE
    return SecretRights(application, meta)


@dataclass(frozen=True)
class Rights:
    """A caller's rights. ``central`` is what is effective for the caller at the central application."""

    central: Effective
    secret: SecretRights = SecretRights()  # at the application that the request is about
    service: bool = False  # a service JWT of that application, or of another one of its project

    def __post_init__(self) -> None:
        assert self.central.application_id == CENTRAL_APPLICATION_ID

    @property
    def is_root(self) -> bool:
        return ROOT_ROLE in self.central.roles

    def root_rule(self, rule: str) -> bool:
        return f"private_data.{rule}" in self.central.rules

    def at(self, project_id: str, level: str, resource: str, rule: str) -> bool:
        for access in self.central.projects:
            if access.project.id == project_id:
                place = access.place(level, resource)
                return place is not None and rule in place.rules
        return False

    def any_role_at(self, project_id: str, level: str, resource: str) -> bool:
        """A role given right there, or one of the whole project that has rules there."""
        for access in self.central.projects:
            if access.project.id == project_id:
                given = any(r.applies and r.level == level and r.resource == resource for r in access.roles)
                return given or access.place(level, resource) is not None
        return False

    def readable(self, *, own: bool) -> frozenset[str]:
        """The sections of a user's schema that the caller may read; of one's own record, all of it (§4.5)."""
        return frozenset(META_WORDS) if own else self._sections("canRead", own=False)

    def writable(self, *, own: bool) -> frozenset[str]:
        return self._sections("canWrite", own=own)

    def _sections(self, right: str, *, own: bool) -> frozenset[str]:
        if self.is_root or self.service:
            return frozenset(META_WORDS)
        enough = (SELF, ALL) if own else (ALL,)
        return frozenset(s for s, word in META_WORDS.items() if self.secret.meta[f"{word}.{right}"] in enough)
