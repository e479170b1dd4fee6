"""Users in the database of this machine."""

from typing import TYPE_CHECKING

from sso.accounts.second_factor.attempt_store import SecondFactorAttempts, clear_attempts
from sso.accounts.user_record import exportable_fields
from sso.cli.administration import Fields
from sso.cli.context import CommandFailure, write_audit_entry
from sso.core.field_errors import FieldError
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, ROOT_ROLE

if TYPE_CHECKING:
    from sso.accounts.model import User
    from sso.cli.services import CommandServices
    from sso.db.transaction import Transaction


class LocalUsers:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def add(self, fields: Fields, *, admin: bool) -> str:
        from sso.state.document import parse

        login, user_id = fields["login"], fields.get("user_id")
        root = {"user_id": login, "application_id": CENTRAL_APPLICATION_ID, "data": {"roles": [ROOT_ROLE]}}
        users = self._services.users
        try:
            document = parse({"users": [fields], "permissions": [root] if admin else []})
            if await users.get_by_login(login) or (user_id and await users.get(user_id)):
                raise CommandFailure("there is already a user with this login or user id")
            await self._services.applier.apply(document)  # the user and the role in one transaction
        except FieldError as error:
            message = str(error).removeprefix("users[0].").replace("permissions[0].data.roles", "--admin")
            raise CommandFailure(message) from None
        user = await users.get_by_login(login)
        assert user is not None
        return user.user_id

    async def list(self, search: str, most: int, skip: int) -> list[Fields]:
        return [_listed(user) for user in await self._services.users.list(search, most, skip)]

    async def find(self, id_or_login: str) -> Fields:
        user = await self._require(id_or_login)
        record: Fields = exportable_fields(user) | {
            "second_factors": list(user.second_factors),
            "reg_time": int(user.reg_time.timestamp()),
            "disabled": user.disabled,
        }
        if user.deletion_due is not None:
            record |= {"deletion_due": int(user.deletion_due.timestamp()), "deletion_by": user.deletion_by or ""}
        if blocked := sorted(await SecondFactorAttempts(self._services.database).blocked(user.user_id)):
            record["blocked_factors"] = blocked
        return record

    async def set_disabled(self, user: Fields, *, disabled: bool) -> None:
        from sso.accounts.user_record import UserRecord
        from sso.cli.local.permission_write import write_permissions
        from sso.perm.changes.last_administrators import LastAdministrator
        from sso.perm.changes.scope import Scope
        from sso.personal_data.errors import DeletionRefused

        record = UserRecord(user_id=user["user_id"], login=user["login"], disabled=disabled)

        async def work(tx: "Transaction") -> None:
            await self._services.complete.operations.users.save(tx, self._services.actor, record, None)

        try:
            await write_permissions(self._services, Scope.account(user["user_id"]), work)
        except LastAdministrator as error:
            raise DeletionRefused(error) from None

    async def set_password(self, user: Fields, password: str) -> None:
        password_hash = await self._services.hasher.hash(password)
        await self._audit("user.set_password", user, {"password": password_hash})
        await self._services.password_changes.set_by_operator(await self._require(user["user_id"]), password_hash)

    async def reset_factors(self, user: Fields) -> None:
        await self._audit("user.reset_2fa", user, {"totp_secret": None, "email_2fa": False})
        await self._services.second_factor_changes.reset(await self._require(user["user_id"]))

    async def unblock_factors(self, user: Fields) -> None:
        await self._audit("user.unblock_2fa", user, {"blocked": False})
        await clear_attempts(self._services.database, user["user_id"])

    async def end_sessions(self, user: Fields) -> None:
        await self._audit("user.end_sessions", user, {"signed_in": False})
        await self._services.users.revoke_all(user["user_id"])

    async def delete(self, user: Fields) -> str:
        stored = await self._require(user["user_id"])
        deletion = self._services.complete.deletion
        due = await deletion.request(stored, None, by="operator", actor=self._services.actor) or stored.deletion_due
        return f"{due:%Y-%m-%d}"

    async def restore(self, user: Fields) -> Fields:
        await self._audit("user.restore", user, {"deleted": False})
        kept = await self._services.complete.deletion.restore(await self._require(user["user_id"]))
        if kept is None:
            raise CommandFailure(f"{user['login']} is being erased and can no longer be kept")
        return {"login": kept.login, "disabled": kept.disabled}

    async def erase(self, user: Fields) -> None:
        from sso.personal_data.erasure import BEING_ERASED, erase_at_once

        stored, complete = await self._require(user["user_id"]), self._services.complete
        if not await erase_at_once(complete.deletion, complete.erasure, stored, self._services.actor):
            raise CommandFailure(f"{stored.login} {BEING_ERASED}")

    async def export(self, user: Fields) -> Fields:
        import orjson

        from sso.personal_data.export import export_user

        document = await export_user(self._services.database, user["user_id"], self._services.actor)
        exported: Fields = orjson.loads(document)
        return exported

    async def _require(self, id_or_login: str) -> "User":
        user = await self._services.users.find(id_or_login)
        if user is None:
            raise CommandFailure(f"there is no user {id_or_login}")
        return user

    async def _audit(self, operation: str, user: Fields, after: object) -> None:
        await write_audit_entry(self._services, operation, user["user_id"], after)


def _listed(user: "User") -> Fields:
    state = "deleted" if user.deletion_due else "disabled" if user.disabled else ""
    flags = [*([state] if state else []), *user.second_factors]
    return {"user_id": user.user_id, "login": user.login, "nick": user.nick, "flags": flags}
