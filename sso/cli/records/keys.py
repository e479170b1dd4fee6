"""Signing keys."""

from datetime import datetime

from msgspec import Struct

from sso.cli.context import CommandFailure
from sso.cli.records.api import PAGE, CommandApi
from sso.client import Record, RecordNotFound, RequestRefused, signing_keys

KEY_SIGNS = "this is the key that signs: create another one first, with `sso key rotate [--side]`"


class ListedKey(Struct, frozen=True):
    kid: str
    algorithm: str
    side: bool
    state: str  # waiting, signing, published, expired or retired
    signs_from: datetime
    published_until: datetime | None
    retired: datetime | None


class ManagedKeys:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def list(self) -> list[ListedKey]:
        """Returns the signing keys in the order in which they begin to sign."""
        keys = [_key(item) async for item in self._api.pages(signing_keys.list(limit=PAGE))]
        return sorted(keys, key=lambda key: (key.signs_from, key.kid))

    async def rotate(self, algorithm: str, *, side: bool) -> str:
        return str((await self._api.send(signing_keys.create({"algorithm": algorithm, "side": side})))["kid"])

    async def retire(self, kid: str) -> bool:
        """Returns False if there is no such key, or it is retired."""
        try:
            key = await self._api.send(signing_keys.get(kid))
            if key["state"] == "retired":
                return False
            await self._api.send(signing_keys.delete(kid))
        except RecordNotFound:
            return False
        except RequestRefused as error:
            if error.status == 409:
                raise CommandFailure(KEY_SIGNS) from None
            raise
        return True


def _key(item: Record) -> ListedKey:
    until, retired = _time(item["retires"]), _time(item["retired"])
    signs_from = datetime.fromisoformat(item["signs_from"])
    return ListedKey(item["kid"], item["algorithm"], item["side"], item["state"], signs_from, until, retired)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
