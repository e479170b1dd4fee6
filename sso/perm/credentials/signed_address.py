"""Signed client addresses: a server that acts for a client sends the client's address, signed with an access key."""

import hashlib
import hmac
import re
from collections.abc import Collection

from sso.core.errors import Forbidden
from sso.core.net import Address, parse_address
from sso.db.clock import DatabaseClock
from sso.perm.stores.access_keys import AccessKeys

MAX_CLOCK_SKEW_S = 300
SIGNATURE = re.compile(r"([0-9a-f]{1,64}):([0-9]{1,15}):([0-9a-fA-F]{64})", re.ASCII)  # key id, Unix time, HMAC


class SignedAddresses:
    def __init__(self, keys: AccessKeys, clock: DatabaseClock) -> None:
        self._keys = keys
        self._clock = clock

    async def resolve(
        self, peer: Address, claimed: str | None, signature: str | None, application_ids: Collection[int]
    ) -> Address:
        """Returns the client address of a request about these applications: the claimed one, or ``peer`` without a
        claim.

        Raises Forbidden if the claimed address is neither ``peer`` nor signed by one of the applications.
        """
        if claimed is None:
            return peer
        try:
            address = parse_address(claimed.strip())
        except ValueError:
            raise Forbidden("Ip: expected an IP address") from None
        if signature is None:
            if address != peer:
                raise Forbidden("Ip is not signed")
            return peer
        if await self._verify(claimed.strip(), signature) not in application_ids:
            raise Forbidden("Ip is signed for another application")
        return address

    async def _verify(self, address: str, signature: str) -> int:
        """Returns the id of the application whose key signed the address.

        The signature covers its spelling in the request.
        """
        parts = SIGNATURE.fullmatch(signature.strip())
        if parts is None or abs(int(parts[2]) - self._clock.now()) > MAX_CLOCK_SKEW_S:
            raise Forbidden("Signature is not valid")
        key_and_secret = await self._keys.find_with_secret(parts[1])
        if key_and_secret is None:
            raise Forbidden("Signature is not valid")
        key, secret = key_and_secret
        expected = hmac.new(secret.encode(), f"{address}\n{parts[2]}".encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, parts[3].lower()):
            raise Forbidden("Signature is not valid")
        return key.application_id


def signing_key_id(signature: str) -> str:
    """Returns the id of the access key that made a valid signature."""
    return signature.strip().partition(":")[0]
