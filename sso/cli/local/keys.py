"""Signing keys in the database of this machine."""

from typing import TYPE_CHECKING

from sso.cli.context import write_audit_entry
from sso.cli.key_administration import KeySigns, ListedKey
from sso.core.algorithms import ALGORITHMS, CHEAP_ALGORITHMS
from sso.keys.rotation import LastKey, longest_token_s
from sso.keys.store import key_states

if TYPE_CHECKING:
    from sso.cli.services import CommandServices


class LocalKeys:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def list(self) -> list[ListedKey]:
        await self._services.key_rotation.ensure_signing_keys(ALGORITHMS[0], sides=CHEAP_ALGORITHMS)
        keys = await self._services.key_store.all()
        states = key_states(keys)
        keys.sort(key=lambda key: (key.signs_from.replace(microsecond=0), key.kid))
        return [
            ListedKey(
                key.kid, key.algorithm, key.side, states[key.kid], key.signs_from, key.published_until, key.retired
            )
            for key in keys
        ]

    async def rotate(self, algorithm: str, *, side: bool) -> str:
        services = self._services
        await write_audit_entry(services, "signing_key.rotate", algorithm, {"algorithm": algorithm, "side": side})
        return await services.key_rotation.rotate(algorithm, longest_token_s(services.settings), side=side)

    async def retire(self, kid: str) -> bool:
        services = self._services
        if kid not in {key.kid for key in await services.key_store.all()}:
            return False
        await write_audit_entry(services, "signing_key.retire", kid, {"retired": True})
        try:
            return await services.key_rotation.retire(kid)
        except LastKey:
            raise KeySigns from None
