"""OAuth clients."""

from datetime import UTC, datetime
from itertools import zip_longest

from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.cli.records.api import PAGE, CommandApi
from sso.cli.records.types import Fields, Records
from sso.client import ApiCall, RecordNotFound, RequestRefused, clients, registration_tokens
from sso.client.call import Record

SECRET_ENDS = ("secret_expires", "second_expires")


class ManagedClients:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def add(self, fields: Fields) -> None:
        try:
            created = await self._api.send(clients.create(fields))
        except RequestRefused as error:
            if error.status == 409:
                raise CommandFailure(f"there is already a client {fields['client_id']}") from None
            raise
        _warn(created)

    async def change(self, client_id: str, fields: Fields) -> None:
        _warn(await self._send(client_id, clients.update(client_id, fields=fields)))

    async def list(self) -> list[Fields]:
        return [_listed(client) async for client in self._api.pages(clients.list(limit=200))]

    async def get(self, client_id: str) -> Fields:
        client = await self._send(client_id, clients.get(client_id))
        secrets = client["secrets"]
        ends = zip_longest(SECRET_ENDS, (_time(secret["expires_at"]) for secret in secrets))
        shown = {**client, **dict(ends), "secrets": len(secrets)}
        return {name: shown[name] for name in _shown_names() if name in shown}

    async def rotate_secret(self, client_id: str, overlap: int | None, expires_in: int | None) -> tuple[str, int]:
        rotated = await self._send(client_id, clients.rotate_secret(client_id, overlap=overlap, expires_in=expires_in))
        return rotated["client_secret"], rotated["client_secret_expires_at"]

    async def finish_rotation(self, client_id: str) -> None:
        await self._send(client_id, clients.rotate_secret(client_id, finish=True))

    async def set_disabled(self, client_id: str, *, disabled: bool) -> None:
        await self._send(client_id, clients.update(client_id, fields={"disabled": disabled}))

    async def approve(self, client_id: str) -> Record:
        """Returns the client as it was approved. It cannot change itself in between."""
        client = await self._send(client_id, clients.get(client_id))
        return await self._send(client_id, clients.update(client_id, fields={"approved": True}, if_match=client.etag))

    async def refuse(self, client_id: str) -> None:
        await self._send(client_id, clients.refuse(client_id))

    async def signal_streams(self, client_id: str) -> Records:
        try:
            return [dict(stream) async for stream in self._api.pages(clients.signal_streams(client_id))]
        except RecordNotFound:
            raise CommandFailure(f"there is no client {client_id}") from None

    async def send_example_signal(self, client_id: str, stream_id: str, event: str) -> None:
        await self._api.send(clients.send_example_signal(client_id, stream_id, event))

    async def add_token(self, uses: int, days: int) -> str:
        token: str = (await self._api.send(registration_tokens.create({"uses": uses, "days": days})))["token"]
        return token

    async def list_tokens(self) -> Records:
        return [dict(token) async for token in self._api.pages(registration_tokens.list(limit=PAGE))]

    async def revoke_token(self, token_id: str) -> None:
        try:
            await self._api.send(registration_tokens.delete(token_id))
        except RecordNotFound:
            raise CommandFailure(f"there is no registration token {token_id}") from None

    async def _send(self, client_id: str, call: ApiCall[Record]) -> Record:
        try:
            return await self._api.send(call)
        except RecordNotFound:
            raise CommandFailure(f"there is no client {client_id}") from None


def _shown_names() -> list[str]:
    """Returns the names of the fields, in the order of local records."""
    from sso.oauth.model import Client

    return [*Client.__struct_fields__, "client_secret_expires_at", "secrets"]


def _time(seconds: int) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None


def _warn(answer: Record) -> None:
    for warning in answer.get("warnings", ()):
        echo(f"warning: {warning}", err=True)


def _listed(client: Record) -> Fields:
    flags = [name for name in ("disabled", "consent", "first_party", "public") if client.get(name)]
    flags += [] if client["approved"] else ["waits for approval"]
    return {
        "client_id": client["client_id"],
        "name": client["name"],
        "profile": client["profile"],
        "hosts": client["redirect_hosts"] or client["redirect_uris"],
        "flags": flags,
    }
