"""What the commands for users, clients, the audit trail, permissions and state do, on this machine or on a server.

A command is written once, with these interfaces. ``sso/cli/local`` implements them with the database, and
``sso/cli/remote`` with the management API of the server that ``--server`` names. Records are as the commands print
them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Fields: TypeAlias = dict[str, Any]
ShowProgress: TypeAlias = Callable[[str, int, int], None]


class UserAdministration(Protocol):
    async def add(self, fields: Fields, *, admin: bool) -> str:
        """Returns the user id. Fails if there is such a user."""
        ...

    async def list(self, search: str, most: int, skip: int) -> list[Fields]:
        """Returns user_id, login, nick and flags."""
        ...

    async def find(self, id_or_login: str) -> Fields:
        """Returns the user. Fails if there is none."""
        ...

    async def set_disabled(self, user: Fields, *, disabled: bool) -> None: ...
    async def set_password(self, user: Fields, password: str) -> None: ...
    async def reset_factors(self, user: Fields) -> None: ...
    async def end_sessions(self, user: Fields) -> None: ...

    async def delete(self, user: Fields) -> str:
        """Closes the account. Returns the day of its erasure."""
        ...

    async def restore(self, user: Fields) -> Fields:
        """Keeps a closed account. Returns the user."""
        ...


class ClientAdministration(Protocol):
    async def add(self, fields: Fields) -> None: ...
    async def change(self, client_id: str, fields: Fields) -> None: ...
    async def list(self) -> list[Fields]: ...
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
    async def entries(self, criteria: AuditCriteria, most: int) -> list[Fields]: ...


class PermissionReader(Protocol):
    async def render(self, user: str, application_id: int, kind: str, at: int | None) -> Any: ...

    async def explain(self, user: str, rule: str, application_id: int, at: int | None) -> tuple[str, Fields]:
        """Returns the login of the user, and the explanation."""
        ...


class StateAdministration(Protocol):
    async def apply(self, document: Fields, show_progress: ShowProgress, *, dry_run: bool, override: bool) -> Fields:
        """Returns the numbers of records and warnings; a dry run also has what would change. Raises DocumentError."""
        ...

    async def logins(self, user_ids: Sequence[str]) -> dict[str, str]:
        """Returns the logins of users by id, as far as they are known."""
        ...

    async def export(self) -> Fields: ...


class ServiceAdministration(Protocol):
    @property
    def users(self) -> UserAdministration: ...
    @property
    def clients(self) -> ClientAdministration: ...
    @property
    def audit(self) -> AuditReader: ...
    @property
    def permissions(self) -> PermissionReader: ...
    @property
    def state(self) -> StateAdministration: ...
