"""/api/admin/users/import: users of other services move in, with the hashes of their passwords."""

from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from sso.admin.answers.shape import AnswerShape
from sso.admin.answers.users import UserImportJson
from sso.admin.request import AdminModel, AdminRequest, AdminResponse, AdminRoute, WriteQuery
from sso.admin.rights import AdminRight
from sso.core.errors import Forbidden
from sso.perm.changes.writer import WriteMode
from sso.state.user_import import MAX_BATCH, ImportOptions, ImportOutcome, UserImport
from sso.web.body import BodyLimit

BATCH_BODY = BodyLimit(2 * 1024 * 1024, 100_000)


class UserBatch(AdminModel):
    users: Annotated[list[Any], Field(min_length=1, max_length=MAX_BATCH)]  # read one by one: a mistake skips one user
    update: bool = False  # change the profile of users who exist, and give a password to verified ones without one
    passwords: bool = False  # with update: replace the passwords of users who exist
    override: bool = False  # import the users even if an assertion of an application fails


class UserImportResource:
    def __init__(self, user_import: UserImport) -> None:
        self._import = user_import

    async def run(self, request: AdminRequest) -> AdminResponse:
        """Imports users of another service, at most 500. Each is created, or skipped with a reason.

        Besides the fields of a user, each may have `password_hash` (bcrypt, PBKDF2, scrypt, Argon2 or a salted SHA),
        `identities` at identity providers, and `roles` at applications. Only root may import users.
        """
        if not request.caller.is_root:
            raise Forbidden("the role root is required to import users")
        body: UserBatch = request.body
        mode = WriteMode(request.query.dry_run, body.override, request.caller.actor)
        results = await self._import.run(mode, body.users, ImportOptions(body.update, body.passwords))
        counts = Counter(result.outcome for result in results)
        data = {outcome.value: counts[outcome] for outcome in ImportOutcome}
        return AdminResponse({"data": data | {"results": [result.json for result in results]}})

    def routes(self) -> tuple[AdminRoute, ...]:
        return (
            AdminRoute(
                "POST",
                "/users/import",
                AdminRight.MANAGE_STATE,
                self.run,
                WriteQuery,
                UserBatch,
                body_limit=BATCH_BODY,
                answer=AnswerShape(UserImportJson),
                operation="import_users",
                summary="Import users",
                example={"users": [{"login": "ann@example.com", "nick": "Ann", "password_hash": "$2b$12$…"}]},
            ),
        )
