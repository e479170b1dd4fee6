"""What commands do, on this machine or on a server.

A command is written once, with these interfaces. ``sso/cli/local`` implements them with the database, and
``sso/cli/remote`` with the management API of the server that ``--server`` names. Records are as the commands print
them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from sso.cli.invitation_administration import InvitationAdministration
from sso.cli.key_administration import KeyAdministration
from sso.perm.engine.records import Assignment, RoleRecord

Fields: TypeAlias = dict[str, Any]
Records: TypeAlias = list[Fields]
ShowProgress: TypeAlias = Callable[[str, int, int], None]

# Functions of a command that get what is stored and return what is to be stored. They may be called several times.
RecordChange: TypeAlias = Callable[[Fields], Fields]  # returns the fields that change
RoleChange: TypeAlias = Callable[[Mapping[str, RoleRecord]], Fields | None]  # None deletes the role
AssignmentChange: TypeAlias = Callable[[list[Assignment]], list[Assignment]]
MemberChange: TypeAlias = Callable[[Fields], Fields]  # of the roles in a project; no roles: the user leaves it


class UserAdministration(Protocol):
    async def add(self, fields: Fields, *, admin: bool) -> str:
        """Returns the user id. Fails if there is such a user."""
        ...

    async def list(self, search: str, most: int, skip: int) -> Records:
        """Returns user_id, login, nick and flags."""
        ...

    async def find(self, id_or_login: str) -> Fields:
        """Returns the user. Fails if there is none."""
        ...

    async def set_disabled(self, user: Fields, *, disabled: bool) -> None: ...
    async def set_password(self, user: Fields, password: str) -> None: ...
    async def reset_factors(self, user: Fields) -> None: ...
    async def unblock_factors(self, user: Fields) -> None: ...
    async def end_sessions(self, user: Fields) -> None: ...

    async def delete(self, user: Fields) -> str:
        """Closes the account. Returns the day of its erasure."""
        ...

    async def restore(self, user: Fields) -> Fields:
        """Keeps a closed account. Returns the user."""
        ...

    async def erase(self, user: Fields) -> None:
        """Erases the account at once. Fails if a worker is erasing it."""
        ...

    async def export(self, user: Fields) -> Fields:
        """Returns everything that is stored about the user."""
        ...


class ClientAdministration(Protocol):
    async def add(self, fields: Fields) -> None: ...
    async def change(self, client_id: str, fields: Fields) -> None: ...
    async def list(self) -> Records: ...
    async def get(self, client_id: str) -> Fields: ...

    async def rotate_secret(self, client_id: str, overlap: int | None, expires_in: int | None) -> tuple[str, int]:
        """Returns the new secret, and when it expires (Unix seconds, 0: never)."""
        ...

    async def finish_rotation(self, client_id: str) -> None: ...
    async def set_disabled(self, client_id: str, *, disabled: bool) -> None: ...


@dataclass(frozen=True)
class AuditCriteria:
    project: str | None = None
    application_id: int | None = None
    user: str | None = None
    operation: str | None = None
    since: int | None = None


class AuditReader(Protocol):
    async def entries(self, criteria: AuditCriteria, most: int) -> Records: ...


class PermissionReader(Protocol):
    async def render(self, user: str, application_id: int, kind: str, at: int | None) -> Any: ...

    async def explain(self, user: str, rule: str, application_id: int, at: int | None) -> tuple[str, Fields]:
        """Returns the login of the user, and the explanation."""
        ...

    async def test_assertions(self, application_id: int | None) -> Fields:
        """Returns the number of checked assertions, those that failed, and warnings."""
        ...


class ViolationReader(Protocol):
    async def find(self, violation_id: str) -> Fields | None:
        """Returns why a request was refused: id, created (a text), gsid, reason, expected, found and address."""
        ...


class StateAdministration(Protocol):
    async def apply(self, document: Fields, show_progress: ShowProgress, *, dry_run: bool, override: bool) -> Fields:
        """Returns the numbers of records and warnings; a dry run also has what would change. Raises FieldError."""
        ...

    async def logins(self, user_ids: Sequence[str]) -> dict[str, str]:
        """Returns the logins of users by id, as far as they are known."""
        ...

    async def export(self) -> Fields: ...


class ApplicationAdministration(Protocol):
    async def list(self, project_id: str | None) -> Records:
        """Returns application_id, name, project_id and removed, in the order of the ids."""
        ...

    async def require(self, application_id: int) -> None:
        """Fails if there is no such application."""
        ...

    async def get(self, application_id: int) -> Fields:
        """Returns the application with its keys. Fails if there is none."""
        ...

    async def add(self, fields: Fields) -> int:
        """Returns the id."""
        ...

    async def service_jwt(self, application_id: int) -> str: ...
    async def email_secret(self, application_id: int) -> str: ...

    async def public_keys(self, application_id: int) -> Records:
        """Returns kid and algorithm."""
        ...

    async def add_public_key(self, application_id: int, pem: str) -> str:
        """Returns the kid."""
        ...

    async def remove_public_key(self, application_id: int, kid: str) -> bool:
        """Returns False if there is no such key."""
        ...


class RoleAdministration(Protocol):
    async def list(self, application_id: int) -> dict[str, RoleRecord]:
        """Returns the roles by name. Fails if there is no such application."""
        ...

    async def require(self, application_id: int, name: str) -> None:
        """Fails if there is no such role."""
        ...

    async def change(self, application_id: int, name: str, change: RoleChange) -> bool:
        """Creates, changes or deletes a role. Returns False if nothing has changed."""
        ...

    async def assign(self, user_id: str, application_id: int, role: str, change: AssignmentChange) -> bool:
        """Changes the roles that are assigned to a user. Returns False if nothing has changed."""
        ...


class ProjectAdministration(Protocol):
    async def list(self) -> Records:
        """Returns id, title, removed, and the numbers of applications, groups and members."""
        ...

    async def find(self, name: str) -> Fields:
        """Finds a project by id, alias or original title. Fails if there is none."""
        ...

    async def add(self, project_id: str, fields: Fields, admins: Sequence[str]) -> None: ...

    async def change(self, project_id: str, change: RecordChange, applications: Iterable[int] = ()) -> None:
        """Changes fields of the project, and its lists allow and disallow.

        ``applications`` are those whose roles the change names.
        """
        ...

    async def delete(self, project_id: str) -> None: ...

    async def members(self, project_id: str) -> Records:
        """Returns user_id, login and roles, in the order of the ids."""
        ...

    async def change_member(self, project_id: str, user_id: str, change: MemberChange) -> bool:
        """Changes the roles of a user in the project. Returns False if nothing has changed."""
        ...


class GroupAdministration(Protocol):
    async def list(self, project_id: str | None) -> Records:
        """Returns the complete groups, by project and title."""
        ...

    async def find(self, name: str, project: str | None) -> Fields:
        """Finds a group by id or title, in one project or in all. Fails if there is none, or several."""
        ...

    async def add(self, project_id: str, fields: Fields) -> str:
        """Returns the id."""
        ...

    async def change(self, group: Fields, change: RecordChange) -> None: ...
    async def delete(self, group: Fields) -> None: ...


class ProviderAdministration(Protocol):
    async def add(self, fields: Fields) -> str:
        """Returns the callback address. Fails if there is such a provider."""
        ...

    async def list(self) -> Records:
        """Returns the providers in the order of their buttons."""
        ...

    async def count_links(self, provider_id: str) -> tuple[int, int]:
        """Returns how many users sign in with it, and how many of them have no other way. Fails if there is none."""
        ...

    async def remove(self, provider_id: str) -> None:
        """Fails if there is none."""
        ...


class WebhookAdministration(Protocol):
    async def list(self) -> Records: ...

    async def add(self, url: str, secret: str, events: Sequence[str]) -> str:
        """Returns the id."""
        ...

    async def remove(self, webhook_id: str) -> None:
        """Fails if there is none."""
        ...

    async def failed_events(self, webhook_id: str, most: int) -> Records:
        """Returns the oldest events that could not be delivered. Fails if there is no such webhook."""
        ...

    async def resend(self, webhook_id: str, ids: Sequence[str] | None) -> int:
        """Returns the number of events that are sent again. Fails if there is no such webhook."""
        ...


class ServiceAdministration(Protocol):
    @property
    def users(self) -> UserAdministration: ...
    @property
    def invitations(self) -> InvitationAdministration: ...
    @property
    def violations(self) -> ViolationReader: ...
    @property
    def clients(self) -> ClientAdministration: ...
    @property
    def audit(self) -> AuditReader: ...
    @property
    def permissions(self) -> PermissionReader: ...
    @property
    def state(self) -> StateAdministration: ...
    @property
    def applications(self) -> ApplicationAdministration: ...
    @property
    def roles(self) -> RoleAdministration: ...
    @property
    def projects(self) -> ProjectAdministration: ...
    @property
    def groups(self) -> GroupAdministration: ...
    @property
    def providers(self) -> ProviderAdministration: ...
    @property
    def keys(self) -> KeyAdministration: ...
    @property
    def webhooks(self) -> WebhookAdministration: ...
