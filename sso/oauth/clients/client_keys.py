"""The public keys of clients that authenticate with private_key_jwt: stored here, or published by the client."""

from functools import lru_cache

import orjson

from sso.core.jwks import Jwk, read_jwks
from sso.core.jwt import InvalidToken
from sso.oauth.clients.fetched_documents import DocumentUnavailable, FetchedDocuments
from sso.oauth.model import Client

Keys = dict[str, Jwk]  # by their kid, "" for a key without one


class ClientKeys:
    def __init__(self, published: FetchedDocuments[Keys]) -> None:
        self._published = published
        self._stored = lru_cache(256)(lambda jwks: read_jwks(orjson.loads(jwks)))

    async def find(self, client: Client, kid: str) -> Jwk:
        """Returns the key that the header of an assertion names. Raises InvalidToken. No transaction may be open."""
        return _find_key(await self._keys(client, kid), kid)

    async def _keys(self, client: Client, kid: str) -> Keys:
        if client.jwks:
            return self._stored(client.jwks)
        try:
            # A client that has changed its keys signs with one that is not known here yet.
            return await self._published.get(client.jwks_uri, lambda keys: _has_key(keys, kid))
        except DocumentUnavailable:
            raise InvalidToken("unknown keys") from None


def _has_key(keys: Keys, kid: str) -> bool:
    try:
        _find_key(keys, kid)
    except InvalidToken:
        return False
    return True


def _find_key(keys: Keys, kid: str) -> Jwk:
    """Returns the key that the header names. Without a name, the client must have only one key."""
    if kid in keys:
        return keys[kid]
    if len(keys) == 1 and (not kid or "" in keys):  # either of both has no name
        return next(iter(keys.values()))
    raise InvalidToken("unknown kid")
