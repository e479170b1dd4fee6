"""A server acting for a client says the client's address, signed with an access key of its application."""

import hashlib
import hmac
import re
import time
from collections.abc import Collection

from sso.core.errors import Forbidden
from sso.core.net import Address, parse_address
from sso.perm.credentials.access_keys import AccessKeys

SKEW_S = 300
SIGNATURE = re.compile(r"([0-9a-f]{1,64}):([0-9]{1,15}):([0-9a-fA-F]{64})", re.ASCII)


class SignedAddresses:
    def __init__(self, keys: AccessKeys) -> None:
        self._keys = keys

    async def resolve(
        self, real: Address, said: str | None, signature: str | None, applications: Collection[int]
    ) -> Address:
        """The address that counts for a request about these applications. What is said and not true is refused."""
        if said is None:
            return real
        try:
            address = parse_address(said.strip())
        except ValueError:
            raise Forbidden("Ip is no address") from None
        if signature is None:
            if address != real:
                raise Forbidden("Ip is not signed")
            return real
        if await self._signer(said.strip(), signature) not in applications:
            raise Forbidden("Ip is signed for another application")
        return address

    async def _signer(self, said: str, signature: str) -> int:
        """The application whose key signed the address, as it was sent."""
        parts = SIGNATURE.fullmatch(signature.strip())
        if parts is None or abs(int(parts[2]) - time.time()) > SKEW_S:
            raise Forbidden("Signature is not valid")
        found = await self._keys.secret_of(parts[1])
        if found is None:
            raise Forbidden("Signature is not valid")
        key, secret = found
        made = hmac.new(secret.encode(), f"{said}\n{parts[2]}".encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(made, parts[3].lower()):
            raise Forbidden("Signature is not valid")
        return key.application_id


def key_id_of(signature: str) -> str:
    """The access key that a valid signature was made with."""
    return signature.strip().partition(":")[0]
