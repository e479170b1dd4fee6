"""Finds the role or group that an argument names, and says what does not exist, or exists already."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sso.cli.context import CommandFailure

if TYPE_CHECKING:
    from sso.cli.records.types import Fields
    from sso.perm.engine.records import RoleRecord


def unknown_user(name: str) -> CommandFailure:
    return CommandFailure(f"there is no user {name}")


def login_has_account(login: str) -> CommandFailure:
    return CommandFailure(f"{login} already has an account")


def unknown_project(name: str) -> CommandFailure:
    return CommandFailure(f"there is no project {name}; `sso project list` shows them")


def unknown_application(application_id: int) -> CommandFailure:
    return CommandFailure(f"there is no application {application_id}; `sso app list` shows them")


def unknown_provider(provider_id: str) -> CommandFailure:
    return CommandFailure(f"there is no identity provider {provider_id}")


def provider_exists(provider_id: str) -> CommandFailure:
    return CommandFailure(f"there is already an identity provider {provider_id}")


def unknown_webhook(webhook_id: str) -> CommandFailure:
    return CommandFailure(f"there is no webhook {webhook_id}; `sso webhook list` shows them")


def require_role(roles: "Mapping[str, RoleRecord]", name: str, application_id: int) -> "RoleRecord":
    """Finds a role among the roles of an application."""
    if name not in roles:
        known = ", ".join(sorted(roles)) or "none"
        raise CommandFailure(f"there is no role {name}; the roles of application {application_id}: {known}")
    return roles[name]


def only_group(groups: "Sequence[Fields]", name: str, project_id: str | None) -> "Fields":
    """Returns the only group among those with this id or title. Titles are not unique."""
    if not groups:
        where = f" in the project {project_id}" if project_id else ""
        raise CommandFailure(f"there is no group {name}{where}; `sso group list` shows them")
    if len(groups) > 1:
        known = ", ".join(f"{group['id']} in {group['project_id']}" for group in groups[:5])
        raise CommandFailure(f"GROUP: several groups have the title {name}: expected one of the ids {known}")
    return groups[0]
