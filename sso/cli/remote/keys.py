"""Signing keys of a server."""

from datetime import datetime

from sso.cli.key_administration import KeySigns, ListedKey
from sso.client import AsyncSsoClient, Record, RecordNotFound, RequestRefused, signing_keys

PAGE = 200


class RemoteKeys:
    def __init__(self, api: AsyncSsoClient) -> None:
        self._api = api

    async def list(self) -> list[ListedKey]:
        keys = [_key(item) async for item in self._api.pages(signing_keys.list(limit=PAGE))]
        return sorted(keys, key=lambda key: (key.signs_from, key.kid))

    async def rotate(self, algorithm: str, *, side: bool) -> str:
        return str((await self._api.send(signing_keys.create({"algorithm": algorithm, "side": side})))["kid"])

    async def retire(self, kid: str) -> bool:
        try:
            key = await self._api.send(signing_keys.get(kid))
            if key["state"] == "retired":
                return False
            await self._api.send(signing_keys.delete(kid))
        except RecordNotFound:
            return False
        except RequestRefused as error:
            if error.status == 409:
                raise KeySigns from None
            raise
        return True


def _key(item: Record) -> ListedKey:
    until, retired = _time(item["retires"]), _time(item["retired"])
    signs_from = datetime.fromisoformat(item["signs_from"])
    return ListedKey(item["kid"], item["algorithm"], item["side"], item["state"], signs_from, until, retired)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
