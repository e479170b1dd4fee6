"""Users."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sso.cli.context import CommandFailure
from sso.cli.records.api import PAGE, CommandApi
from sso.cli.records.types import Fields
from sso.client import RecordNotFound, RequestRefused, state, users
from sso.client.call import Record

MAX_BANS = 1000  # a user has fewer
CENTRAL_APPLICATION, ROOT_ROLE = 1, "root"
USER_EXISTS = CommandFailure("there is already a user with this login or user id")


class ManagedUsers:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def add(self, fields: Fields, *, admin: bool) -> str:
        """Returns the user id. Fails if there is such a user."""
        if admin:
            return await self._add_administrator(fields)
        try:
            return str((await self._api.send(users.create(fields)))["user_id"])
        except RequestRefused as error:
            if error.status == 409 and error.field in (("login",), ("user_id",)):
                raise USER_EXISTS from None
            raise

    async def _add_administrator(self, fields: Fields) -> str:
        """Creates the user and assigns the role in one transaction."""
        user_id = fields.get("user_id")
        if await self._by_login(fields["login"]) or (user_id and await self._by_id(user_id)):
            raise USER_EXISTS
        root = {"user_id": fields["login"], "application_id": CENTRAL_APPLICATION, "data": {"roles": [ROOT_ROLE]}}
        await self._api.send(state.apply({"users": [fields], "permissions": [root]}))
        created = await self._by_login(fields["login"])
        assert created is not None
        return str(created["user_id"])

    async def import_batch(self, batch: Sequence[Fields], **options: bool) -> Fields:
        """Imports users of another service. ``results``: what was done with each."""
        return await self._api.send(users.import_batch(batch, **options))

    async def list(self, search: str, limit: int, offset: int) -> list[Fields]:
        call = users.list(search=search or None, limit=max(1, min(PAGE, offset + limit)))
        return [_listed(user) for user in (await self._api.records(call, offset + limit))[offset:]]

    async def find(self, id_or_login: str) -> Fields:
        user = await self._by_id(id_or_login) if id_or_login.isdecimal() else await self._by_login(id_or_login)
        if user is None:
            raise CommandFailure(f"there is no user {id_or_login}")
        user["disabled"] = user.pop("disabled")  # in the order of local records
        user["reg_time"] = int(datetime.fromisoformat(user["reg_time"]).timestamp())
        if user["deletion_due"]:
            user["deletion_due"] = int(datetime.fromisoformat(user["deletion_due"]).timestamp())
        else:
            del user["deletion_due"], user["deletion_by"]
        if user["second_factors"]:
            block = await self._api.send(users.blocked_factors(user["user_id"]))
            user |= {"blocked_factors": block["blocked"]} if block["blocked"] else {}
        return user

    async def set_disabled(self, user: Fields, *, disabled: bool) -> None:
        await self._api.send(users.update(user["user_id"], fields={"disabled": disabled}))

    async def set_password(self, user: Fields, password: str) -> None:
        await self._api.send(users.update(user["user_id"], fields={"password": password}))

    async def reset_factors(self, user: Fields) -> None:
        await self._api.send(users.reset_factors(user["user_id"]))

    async def unblock_factors(self, user: Fields) -> None:
        await self._api.send(users.unblock_factors(user["user_id"]))

    async def end_sessions(self, user: Fields) -> None:
        await self._api.send(users.end_sessions(user["user_id"]))

    async def bans(self, user: Fields) -> Sequence[Fields]:
        return await self._api.records(users.bans(user["user_id"]), MAX_BANS)

    async def ban(self, user: Fields, scope: Fields | str, **fields: Any) -> Fields:
        return await self._api.send(users.ban(user["user_id"], scope, **fields))

    async def unban(self, user: Fields, ban_id: str) -> None:
        await self._api.send(users.unban(user["user_id"], ban_id))

    async def delete(self, user: Fields) -> str:
        closed = await self._api.send(users.delete(user["user_id"]))
        return str(closed["deletion_due"])[:10]

    async def restore(self, user: Fields) -> Fields:
        kept = await self._api.send(users.restore(user["user_id"]))
        return {"login": kept["login"], "disabled": kept["disabled"]}

    async def erase(self, user: Fields) -> None:
        await self._api.send(users.erase(user["user_id"]))

    async def impersonate(self, user: Fields, reason: str, *, minutes: int, writes: bool) -> str:
        """Returns the link."""
        return await self._api.send(users.impersonate(user["user_id"], reason, minutes=minutes, writes=writes))

    async def merge(self, user: Fields, into: Fields, *, dry_run: bool) -> Fields:
        return await self._api.send(users.merge(user["user_id"], into["user_id"], dry_run=dry_run))

    async def unmerge(self, into: Fields, merged: Fields) -> Sequence[str]:
        result = await self._api.send(users.unmerge(into["user_id"], merged["user_id"]))
        return [str(text) for text in result["changed"]]

    async def links(self, user: Fields) -> Sequence[Fields]:
        return [dict(link) for link in await self._api.records(users.links(user["user_id"]), PAGE)]

    async def remove_link(self, user: Fields, link_id: str) -> None:
        await self._api.send(users.remove_link(user["user_id"], link_id))

    async def export(self, user: Fields) -> Fields:
        return await self._api.send(users.export(user["user_id"]))

    async def _by_id(self, user_id: str) -> Record | None:
        try:
            return await self._api.send(users.get(user_id))
        except RecordNotFound:
            return None

    async def _by_login(self, login: str) -> Record | None:
        found = await self._api.records(users.list(login=login), 1)
        return found[0] if found else None


def _listed(user: Record) -> Fields:
    state = "deleted" if user["deletion_due"] else "disabled" if user["disabled"] else ""
    banned = ["banned"] if user.get("banned") else []  # older services do not say it
    flags = [*([state] if state else []), *banned, *user["second_factors"]]
    return {"user_id": user["user_id"], "login": user["login"], "nick": user["nick"], "flags": flags}
