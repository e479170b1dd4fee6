"""The public keys of clients that authenticate with private_key_jwt: stored here, or published by the client."""

from functools import lru_cache
from weakref import WeakKeyDictionary

import orjson
import structlog

from sso.core.fetched_documents import DocumentUnavailable, FetchedDocument, FetchedDocuments
from sso.core.jwks import Jwk, read_jwks, read_published_jwks
from sso.core.jwt import InvalidToken
from sso.core.keys import UnusableKey
from sso.oauth.model import Client

MAX_PUBLISHED_JWKS = 64 * 1024  # bytes

Keys = dict[str, Jwk]  # by their kid, "" for a key without one

log = structlog.get_logger()


class ClientKeys:
    def __init__(self, documents: FetchedDocuments) -> None:
        self._documents = documents
        self._stored = lru_cache(256)(lambda jwks: read_jwks(orjson.loads(jwks)))
        self._published: WeakKeyDictionary[FetchedDocument, Keys] = WeakKeyDictionary()

    async def find(self, client: Client, kid: str) -> Jwk:
        """Returns the key that the header of an assertion names. Raises InvalidToken.

        It may wait for the client's server, so no database connection may be held.
        """
        if client.jwks:
            return _find_key(self._stored(client.jwks), kid)
        try:
            return await self._find_published(client.jwks_uri, kid)
        except (DocumentUnavailable, UnusableKey) as error:
            log.warning("oauth.client_keys_failed", client=client.client_id, reason=str(error))
            raise InvalidToken("unknown keys") from None

    async def _find_published(self, url: str, kid: str) -> Jwk:
        document = await self._documents.get(url)
        try:
            return _find_key(self._keys_of(document), kid)
        except InvalidToken:  # a client that has changed its keys signs with a new one
            newer = await self._documents.get(url, newer_than=document.fetched)
            return _find_key(self._keys_of(newer), kid)

    def _keys_of(self, document: FetchedDocument) -> Keys:
        keys = self._published.get(document)
        if keys is None:
            keys = self._published[document] = read_published_jwks(document.content)
        return keys


def _find_key(keys: Keys, kid: str) -> Jwk:
    """Returns the key that the header names. Without a name, the client must have only one key."""
    if kid in keys:
        return keys[kid]
    if len(keys) == 1 and (not kid or "" in keys):  # either of both has no name
        return next(iter(keys.values()))
    raise InvalidToken("unknown kid")
