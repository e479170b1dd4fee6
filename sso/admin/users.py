"""/api/admin/users: lists, creates and changes accounts."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from sso.accounts.model import User, login_key
from sso.accounts.users import UserStore
from sso.admin.caller import AdminCaller
from sso.admin.errors import Conflict
from sso.admin.protected_users import ProtectedUsers
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    JsonRecord,
    SearchQuery,
    WriteQuery,
    list_response,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.admin.user_directory import UserDirectory
from sso.core.encryption import Keyring
from sso.core.errors import ApiError, NotFound
from sso.core.ids import is_user_id
from sso.core.moments import rfc3339
from sso.core.passwords import Hasher
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.last_administrators import LastAdministrator
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import PermissionWriter, WriteMode, Written, overridable_by
from sso.personal_data.errors import only_administrator
from sso.state.location import DocumentError
from sso.state.sections import users
from sso.state.sections.users import UserChanges, UserPart
from sso.state.summary import CREATED

LOGIN_TAKEN = "login: is used by another user"
FIXED_FIELDS = dict.fromkeys(("second_factors", "reg_time", "deletion_due", "deletion_by"), "")
NEW_USER = {"login": "ann@example.com", "password": "a long password", "nick": "Ann"}
_LOCK = Statement("SELECT * FROM users WHERE user_id = :user_id FOR UPDATE")
_BY_LOGIN = Statement("SELECT * FROM users WHERE login_key = :login_key")


class _RolledBack(Exception):
    """Ends a transaction whose changes are not wanted."""


class UserCreation(UserPart):
    override: bool = False  # create the user even if an assertion of an application fails


class UserPatch(UserChanges):
    override: bool = False  # save even if an assertion of an application fails


class UserResource:
    def __init__(
        self,
        writer: PermissionWriter,
        database: Database,
        store: UserStore,
        hasher: Hasher,
        keyring: Keyring,
        protected: ProtectedUsers,
    ) -> None:
        self._writer = writer
        self._database = database
        self._store = store
        self._directory = UserDirectory(database)
        self._hasher = hasher
        self._keyring = keyring
        self._protected = protected

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: SearchQuery = request.query
        found = await self._directory.page(query.search, query.after, query.limit)
        return list_response([user_json(user) for user in found.users], found.next_after)

    async def get(self, request: AdminRequest) -> AdminResponse:
        return record_response(user_json(await self.require(request.path["user_id"])))

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: UserCreation = request.body
        part = UserPart.model_validate(body.model_dump(exclude_none=True, exclude={"override"}))
        password_hash = await self._hasher.hash(part.password) if part.password is not None else None

        async def work(tx: Transaction) -> User:
            await _refuse_taken_login(tx, part.login)
            if part.user_id is not None and await tx.row(_LOCK, user_id=part.user_id):
                raise Conflict("user_id: is used by another user")
            outcome = await users.apply(tx, request.caller.actor, self._keyring, "", part, password_hash)
            if outcome != CREATED:  # a concurrent request was faster
                raise Conflict(LOGIN_TAKEN)
            created = User.from_row(await tx.row(_BY_LOGIN, login_key=login_key(part.login)))
            await self._protected.require_manageable(request.caller, created.user_id, tx)
            return created

        mode = _write_mode(request.caller, override=body.override)
        return record_response(user_json((await self._write(mode, Scope.account(part.login), work)).result), 201)

    async def change(self, request: AdminRequest) -> AdminResponse:
        user = await self.require_manageable(request.caller, request.path["user_id"])
        changes: UserPatch = request.body
        if changes.user_id not in (None, user.user_id):
            raise ApiError("user_id: cannot be changed")
        password_hash = await self._new_hash(user, changes.password)
        given = changes.model_dump(exclude_none=True, exclude={"override"})

        async def work(tx: Transaction) -> User:
            locked = User.from_row(await tx.row(_LOCK, user_id=user.user_id))
            request.check_version(user_json(locked))
            await _refuse_taken_login(tx, changes.login, user.user_id)
            part = UserPart.model_validate({"login": locked.login, **given, "user_id": user.user_id})
            await users.apply(tx, request.caller.actor, self._keyring, "", part, password_hash)
            await self._protected.require_manageable(request.caller, user.user_id, tx)
            return User.from_row(await tx.row(_LOCK, user_id=user.user_id))

        query: WriteQuery = request.query
        mode = _write_mode(request.caller, dry_run=query.dry_run, override=changes.override)
        written = await self._write(mode, Scope.account(user.user_id), work)
        return AdminResponse(written.impact.json()) if query.dry_run else record_response(user_json(written.result))

    async def require(self, user_id: str) -> User:
        user = await self._store.get(user_id) if is_user_id(user_id) else None
        if user is None:
            raise NotFound("user not found")
        return user

    async def require_manageable(self, caller: AdminCaller, user_id: str) -> User:
        user = await self.require(user_id)
        await self._protected.require_manageable(caller, user_id)
        return user

    async def exists(self, login: str) -> bool:
        return await self._store.get_by_login(login) is not None

    async def require_creatable(self, caller: AdminCaller, login: str) -> None:
        """Raises Forbidden if a user with this login would have a right over the service that the caller lacks.

        Nothing is changed: the user is created in a transaction that is rolled back.
        """
        if caller.is_root:
            return

        async def work(tx: Transaction) -> None:
            await users.apply(tx, caller.actor, self._keyring, "", UserPart(login=login), None)
            created = User.from_row(await tx.row(_BY_LOGIN, login_key=login_key(login)))
            await self._protected.require_manageable(caller, created.user_id, tx)
            raise _RolledBack

        with suppress(_RolledBack):
            await self._database.transaction(work)

    async def _new_hash(self, user: User, password: str | None) -> str | None:
        """Returns the hash of the new password, or None if there is none or it is the present one."""
        if password is None or (user.password_hash and await self._hasher.matches(user.password_hash, password)):
            return None
        return await self._hasher.hash(password)

    async def _write(
        self, mode: WriteMode, scope: Scope, work: Callable[[Transaction], Awaitable[User]]
    ) -> Written[User]:
        """Conditions of roles and groups compare with attributes of users, so a change may change permissions."""
        try:
            return await self._writer.write(mode, scope, work)
        except DocumentError as error:
            raise ApiError(str(error).removeprefix(".")) from None
        except LastAdministrator as error:
            raise Conflict(str(only_administrator(error))) from None
        except UniqueViolation:  # a concurrent request was faster
            raise Conflict(LOGIN_TAKEN) from None


def _write_mode(caller: AdminCaller, *, dry_run: bool = False, override: bool = False) -> WriteMode:
    manages = AdminRight.MANAGE_APPLICATIONS in caller.rights
    overridable = overridable_by(is_root=caller.is_root, manages_applications=manages)
    return WriteMode(dry_run, override, caller.actor, overridable)


async def _refuse_taken_login(tx: Transaction, login: str | None, user_id: str = "") -> None:
    """Raises Conflict if a user other than ``user_id`` has the login. A new user has no id yet."""
    owner = await tx.row(_BY_LOGIN, login_key=login_key(login)) if login is not None else None
    if owner is not None and owner["user_id"] != user_id:
        raise Conflict(LOGIN_TAKEN)


def user_json(user: User) -> JsonRecord:
    return users.exported(user) | {
        "disabled": user.disabled,
        "second_factors": list(user.second_factors),
        "reg_time": rfc3339(user.reg_time),
        "deletion_due": rfc3339(user.deletion_due) if user.deletion_due else None,
        "deletion_by": user.deletion_by,
    }
