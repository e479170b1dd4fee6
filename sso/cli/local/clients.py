"""OAuth clients in the database of this machine."""

import json
from typing import TYPE_CHECKING

from sso.cli.administration import Fields
from sso.cli.client_attributes import failure, parse_client
from sso.cli.context import CommandFailure, write_audit_entry
from sso.cli.echo import echo
from sso.core.field_errors import FieldError

if TYPE_CHECKING:
    from sso.cli.services import CommandServices
    from sso.oauth.model import Client
    from sso.state.document import Document


class LocalClients:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def add(self, fields: Fields) -> None:
        if await self._services.clients.get(fields["client_id"]):
            raise CommandFailure(f"there is already a client {fields['client_id']}")
        await self._apply(parse_client(fields))

    async def change(self, client_id: str, fields: Fields) -> None:
        document = parse_client({"client_id": client_id} | fields)
        await self._require(client_id)
        await self._apply(document)

    async def list(self) -> list[Fields]:
        return [_listed(client) for client in await self._services.clients.list()]

    async def get(self, client_id: str) -> Fields:
        client = await self._require(client_id)
        shown = {name: getattr(client, name) for name in client.__dataclass_fields__ if not name.endswith("_sealed")}
        shown["jwks"] = json.loads(client.jwks) if client.jwks else None
        for name in ("secret_expires", "second_expires"):
            shown[name] = shown[name] and shown[name].isoformat(timespec="seconds")
        shown["client_secret_expires_at"] = client.client_secret_expires_at
        shown["secrets"] = sum(sealed is not None for sealed in (client.secret_sealed, client.second_sealed))
        return shown

    async def rotate_secret(self, client_id: str, overlap: int | None, expires_in: int | None) -> tuple[str, int]:
        client = await self._require(client_id)
        if client.secret_sealed is None:
            raise CommandFailure(f"{client_id} has no secret: it is public or uses private_key_jwt")
        await self._audit("client.rotate_secret", client_id, {"client_secret": "new"})
        secret = await self._services.clients.rotate_secret(client_id, overlap_s=overlap, lifetime_s=expires_in)
        rotated = await self._require(client_id)
        if secret is None:
            raise CommandFailure(f"there is no client {client_id}")
        return secret, rotated.client_secret_expires_at

    async def finish_rotation(self, client_id: str) -> None:
        await self._require(client_id)
        await self._audit("client.finish_rotation", client_id, {"client_secret": "only the newest"})
        await self._services.clients.finish_rotation(client_id)

    async def set_disabled(self, client_id: str, *, disabled: bool) -> None:
        await self._require(client_id)
        await self._audit("client.disable" if disabled else "client.enable", client_id, {"disabled": disabled})
        await self._services.clients.set_disabled(client_id, disabled)

    async def _apply(self, document: "Document") -> None:
        from sso.oauth.clients.redirect_uris import is_redirect_uri

        (part,) = document.clients
        allow_http = not self._services.settings.https
        for uri in part.redirect_uris or ():
            if not is_redirect_uri(uri, part.redirect_hosts or (), part.redirect_uris or (), allow_http=allow_http):
                raise CommandFailure(f"--redirect-uri {uri}: not allowed for this client; see `sso client add --help`")
        try:
            await self._services.applier.apply(document)
        except FieldError as error:
            raise failure(error) from None
        await self._warn_about_application(part.application_id)

    async def _warn_about_application(self, application_id: int | None) -> None:
        """A client may be added before its application, but gets no tokens until the application exists."""
        from sso.perm.stores.applications import read_application_row

        if application_id and await read_application_row(self._services.database, application_id) is None:
            echo(f"warning: there is no application {application_id}; `sso app list` shows them", err=True)

    async def _require(self, client_id: str) -> "Client":
        client = await self._services.clients.get(client_id)
        if client is None:
            raise CommandFailure(f"there is no client {client_id}")
        return client

    async def _audit(self, operation: str, client_id: str, after: object) -> None:
        await write_audit_entry(self._services, operation, client_id, after)


def _listed(client: "Client") -> Fields:
    flags = [name for name in ("disabled", "consent", "first_party") if getattr(client, name)]
    return {
        "client_id": client.client_id,
        "name": client.name,
        "profile": client.profile,
        "hosts": list(client.redirect_hosts or client.redirect_uris),
        "flags": [*flags, *(["public"] if client.is_public else [])],
    }
