"""A caller's rights: root, root rules, project access, and the secret rules of the application of the request.

Rights are computed from structured permissions and never from rendered strings: ``list_short`` shows the same path of
public and private data as one entry, but a rule in public data is not a root rule.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.management_rights import MANAGE_APPLICATIONS, VIEW_APPLICATIONS
from sso.perm.engine.reserved_names import ROOT_ROLE
from sso.perm.engine.secret_rights import ALL, NO_SECRET_RIGHTS, SELF, SecretRights

# Section of a user's schema → its name in secret_data.meta.
META_NAMES: Mapping[str, str] = {
    "roles": "roles",
    "private_data": "private",
    "public_data": "public",
    "secret_data": "secret",
    "login": "secret",  # login rules of a user are guarded like secret data
}
ALL_SECTIONS = frozenset(META_NAMES)
# The rights of the management API over all sections of all users.
_SECTION_RIGHTS = {"canRead": (VIEW_APPLICATIONS, MANAGE_APPLICATIONS), "canWrite": (MANAGE_APPLICATIONS,)}


class Rights(NamedTuple):
    """A caller's rights. ``central`` holds the caller's effective permissions at the central application."""

    central: EffectivePermissions
    secret: SecretRights = NO_SECRET_RIGHTS  # at the application of the request
    service: bool = False  # the caller has a service JWT of that application, or of another one in its project
    management: frozenset[str] = frozenset()  # those of MANAGEMENT_RIGHTS that count for the request
    is_operator: bool = False  # the caller is a service client of the central application: it has every right

    @property
    def is_root(self) -> bool:
        return self.is_operator or ROOT_ROLE in self.central.roles

    @property
    def root_rules(self) -> frozenset[str]:
        """The rules in ``private_data`` of the central application, without that prefix."""
        prefix = "private_data."
        return frozenset(rule.removeprefix(prefix) for rule in self.central.rules if rule.startswith(prefix))

    def has_root_rule(self, rule: str) -> bool:
        return f"private_data.{rule}" in self.central.rules

    def has_rule_at(self, project_id: str, level: str, resource: str, rule: str) -> bool:
        for access in self.central.projects:
            if access.project.id == project_id:
                scope = access.scope(level, resource)
                return scope is not None and rule in scope.rules
        return False

    def has_role_at(self, project_id: str, level: str, resource: str) -> bool:
        """Returns whether the caller has a role at this resource, or a project-wide role with rules for it."""
        for access in self.central.projects:
            if access.project.id == project_id:
                direct = any(r.applies and r.level == level and r.resource == resource for r in access.roles)
                return direct or access.scope(level, resource) is not None
        return False

    def readable_sections(self, *, own: bool) -> frozenset[str]:
        """Returns the sections of a user's schema that the caller may read: all sections of the caller's own (§4.5)."""
        return ALL_SECTIONS if own else self._sections("canRead", own=False)

    def writable_sections(self, *, own: bool) -> frozenset[str]:
        return self._sections("canWrite", own=own)

    def _sections(self, right: str, *, own: bool) -> frozenset[str]:
        if self.is_root or self.service or not self.management.isdisjoint(_SECTION_RIGHTS[right]):
            return ALL_SECTIONS
        sufficient = (SELF, ALL) if own else (ALL,)
        return frozenset(
            section for section, name in META_NAMES.items() if self.secret.meta[f"{name}.{right}"] in sufficient
        )
