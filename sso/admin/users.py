"""/api/admin/users: lists, creates, changes, closes and erases accounts."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Literal

from sso.accounts.model import User
from sso.accounts.operations import UserOperations, login_taken
from sso.accounts.user_record import UserChanges, UserRecord, exported_user
from sso.accounts.user_search_store import UserDirectory, UserFilters
from sso.accounts.user_store import UserStore, lock_user
from sso.admin.answers.shape import NO_DATA, AnswerShape
from sso.admin.answers.users import USER
from sso.admin.caller import AdminCaller
from sso.admin.protected_users import ProtectedUsers
from sso.admin.record_resource import RecordKind, RecordResource
from sso.admin.request import AdminModel, AdminRequest, AdminResponse, JsonRecord, SortedQuery, WriteQuery
from sso.admin.rights import AdminRight
from sso.core.errors import ApiError, Conflict, Forbidden
from sso.core.field_errors import FieldError
from sso.core.ids import is_user_id
from sso.core.moments import rfc3339
from sso.core.passwords import Hasher
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.sorted_pages import Page
from sso.db.transaction import Transaction
from sso.perm.changes.last_administrators import LastAdministrator
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import PermissionWriter, WriteMode, overridable_by
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.assignments import find_holders
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.erasure import BEING_ERASED, AccountErasure, erase_at_once
from sso.personal_data.errors import DeletionRefused, only_administrator
from sso.web.request_model import Flag, QueryFlag, at_most

MAX_ADMINISTRATORS = 5000
FIXED_FIELDS = (
    "second_factors", "reg_time", "terms_version", "terms_accepted", "deletion_due", "deletion_by", "banned",
    "merged_into",
)  # fmt: skip


class _RolledBack(Exception):
    """Ends a transaction whose changes are not wanted."""


class UserCreation(UserRecord):
    override: bool = False  # create the user even if an assertion of an application fails


class UserPatch(UserChanges):
    override: bool = False  # save even if an assertion of an application fails


class UserQuery(SortedQuery):
    sort: Literal["login", "nick", "reg_time"] | None = None  # without it: login
    login: Annotated[str, at_most(320)] | None = None  # the whole login, in any case
    # closed: it will be erased. banned: somewhere, or everywhere
    status: Literal["active", "disabled", "closed", "banned"] | None = None
    verified: QueryFlag | None = None  # whether the e-mail address is
    two_step: QueryFlag | None = None  # whether the user has a second factor
    administrator: QueryFlag = False  # only users to whom roles of the central application were given


class DeletionQuery(AdminModel):
    now: Flag = False  # erase the account at once; it cannot be restored


class UserResource(RecordResource[User]):
    variable = "user_id"
    kind = RecordKind(
        "user",
        "/users",
        "/users/<user_id>",
        AdminRight.VIEW_USERS,
        AdminRight.MANAGE_USERS,
        UserCreation,
        {"login": "ann@example.com", "password": "a long password", "nick": "Ann"},
        UserPatch,
        {"disabled": True},
        dict.fromkeys(FIXED_FIELDS, ""),
        list_query=UserQuery,
        change_query=WriteQuery,
        delete_query=DeletionQuery,
        record=USER,
        answers={"delete": AnswerShape(NO_DATA, {"data": USER})},
    )

    def __init__(
        self,
        database: Database,
        writer: PermissionWriter,
        store: UserStore,
        hasher: Hasher,
        operations: UserOperations,
        deletion: AccountDeletion,
        erasure: AccountErasure,
        protected: ProtectedUsers,
    ) -> None:
        super().__init__(database)
        self._writer = writer
        self._store = store
        self._directory = UserDirectory(database)
        self._hasher = hasher
        self._operations = operations
        self._deletion = deletion
        self._erasure = erasure
        self._protected = protected

    async def page(self, request: AdminRequest) -> Page[User]:
        """``administrator`` finds the users with roles of the central application. It needs the role root."""
        query: UserQuery = request.query
        user_ids = await self._administrators(request.caller) if query.administrator else None
        if query.login is not None:
            user = await self._store.get_by_login(query.login)
            user_ids = [user.user_id] if user and (user_ids is None or user.user_id in user_ids) else []
        filters = UserFilters(query.status, query.verified, query.two_step, user_ids)
        return await self._directory.page(query.page, filters)

    async def _administrators(self, caller: AdminCaller) -> list[str]:
        if not caller.is_root:
            raise Forbidden("administrator: the role root is required")
        holders = await find_holders(self.database, CENTRAL_APPLICATION_ID, "", "", "", MAX_ADMINISTRATORS)
        return [str(holder["user_id"]) for holder in holders]

    async def read(self, key: str) -> User | None:
        return await self._store.get(key) if is_user_id(key) else None

    async def lock(self, tx: Transaction, key: str) -> User | None:
        return await lock_user(tx, key)

    def json(self, record: User) -> JsonRecord:
        return user_json(record)

    def taken(self) -> ApiError:
        return login_taken()

    async def authorize(self, request: AdminRequest, record: User, tx: Transaction) -> None:
        await self._protected.require_manageable(request.caller, record.user_id, tx)

    async def prepare_new(self, request: AdminRequest) -> tuple[UserRecord, str | None]:
        """Returns the record, and the hash of its password."""
        record: UserCreation = request.body
        return record, None if record.password is None else await self._hasher.hash(record.password)

    async def prepare_changes(self, request: AdminRequest) -> tuple[UserChanges, str | None]:
        """Returns the changes, and the hash of the password if it is a new one."""
        user, changes = await self.require_manageable(request), request.body
        if changes.user_id not in (None, user.user_id):
            raise FieldError(("user_id",), "cannot be changed")
        password = changes.password
        if password is None or (user.password_hash and await self._hasher.matches(user.password_hash, password)):
            return changes, None
        return changes, await self._hasher.hash(password)

    async def insert(self, tx: Transaction, request: AdminRequest, prepared: tuple[UserRecord, str | None]) -> User:
        return await self._operations.create(tx, request.caller.actor, *prepared)

    async def save(
        self, tx: Transaction, request: AdminRequest, record: User, prepared: tuple[UserChanges, str | None]
    ) -> None:
        await self._operations.change(tx, request.caller.actor, record, *prepared)

    async def respond_written(
        self,
        request: AdminRequest,
        work: Callable[[Transaction], Awaitable[User]],
        status: int,
        prepared: tuple[UserChanges, str | None],
    ) -> AdminResponse:
        """Conditions of roles and groups compare with attributes of users, so a change may change permissions."""
        caller, dry_run = request.caller, getattr(request.query, "dry_run", False)
        manages = AdminRight.MANAGE_APPLICATIONS in caller.rights
        overridable = overridable_by(is_root=caller.is_root, manages_applications=manages)
        mode = WriteMode(dry_run, request.body.override, caller.actor, overridable)
        scope = Scope.account(request.path.get("user_id") or request.body.login)
        try:
            written = await self._writer.write(mode, scope, work)
        except LastAdministrator as error:
            raise Conflict(str(only_administrator(error))) from None
        except UniqueViolation:  # a concurrent request was faster
            raise login_taken() from None
        return AdminResponse(written.impact.json()) if dry_run else self.respond(written.result, status)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Closes the account. It is erased after ``SSO_DELETION_DAYS``, and can be restored until then.

        With ``now=1`` it is erased at once.
        """
        user, actor = await self.require_manageable(request), request.caller.actor

        async def check_version(_tx: Transaction, current: User) -> None:
            request.check_version(user_json(current))

        try:
            if not request.query.now:
                await self._deletion.request(user, None, by="operator", actor=actor, precondition=check_version)
                return self.respond(await self.require(user.user_id))
            if not await erase_at_once(self._deletion, self._erasure, user, actor, check_version):
                raise Conflict(f"the account {BEING_ERASED}")
        except DeletionRefused as error:
            raise Conflict(str(error.text)) from None
        return AdminResponse()

    async def restore(self, request: AdminRequest) -> AdminResponse:
        """Keeps a closed account. A user who was disabled stays disabled."""
        user = await self.require_manageable(request)
        kept = await self._deletion.restore(user, request.caller.actor)
        if kept is None:
            raise Conflict(f"the account {BEING_ERASED}" if user.deletion_due else "the account is not closed")
        return self.respond(kept)

    async def require(self, user_id: str) -> User:
        return self.existing(await self.read(user_id))

    async def require_manageable(self, request: AdminRequest) -> User:
        """Returns the user of the path. Raises Forbidden if the caller may not change the user."""
        user = await self.require(self.path_key(request))
        await self._protected.require_manageable(request.caller, user.user_id)
        return user

    async def require_creatable(self, caller: AdminCaller, login: str) -> None:
        """Raises FieldError if the login is taken, and Forbidden if a user with this login would have a right over the
        service that the caller lacks.

        Nothing is changed: the user is created in a transaction that is rolled back.
        """
        if await self._store.get_by_login(login) is not None:
            raise login_taken()
        if caller.is_root:
            return

        async def work(tx: Transaction) -> None:
            created = await self._operations.create(tx, caller.actor, UserRecord(login=login), None)
            await self._protected.require_manageable(caller, created.user_id, tx)
            raise _RolledBack

        with suppress(_RolledBack):
            await self.database.transaction(work)


def user_json(user: User) -> JsonRecord:
    return exported_user(user) | {
        "disabled": user.disabled,
        "second_factors": list(user.second_factors),
        "reg_time": rfc3339(user.reg_time),
        "terms_version": user.terms_version,
        "terms_accepted": rfc3339(user.terms_accepted) if user.terms_accepted else None,
        "deletion_due": rfc3339(user.deletion_due) if user.deletion_due else None,
        "deletion_by": user.deletion_by,
        "merged_into": user.merged_into,
        "banned": bool(user.bans),
    }
