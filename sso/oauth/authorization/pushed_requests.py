"""Pushed authorization requests (RFC 9126): a client sends its authorization request itself, and gets a request URI.

The browser then brings only the request URI, which works once, for that client, and for a short time.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from sso.core.ids import SECRET_TOKEN, digest, secret_token
from sso.core.net import Address
from sso.db.database import Database
from sso.db.rate_limit import EventCounter, RateLimiter
from sso.oauth.authorization.authorize import Authorize
from sso.oauth.authorization.request import PARAMETERS, Parameters
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.clients.store import ClientStore
from sso.oauth.errors import (
    AuthorizationError,
    AuthorizationFinished,
    InvalidClient,
    InvalidDpopProof,
    InvalidPushedRequest,
    InvalidRedirectUri,
    InvalidRequest,
    TooManyPushedRequests,
)
from sso.oauth.model import Client, is_client_id
from sso.oauth.one_time_store import save_pushed_request, use_pushed_request
from sso.oauth.registration.metadata_documents import MetadataDocuments
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.telemetry.counters import THROTTLED_REQUESTS

LIFETIME_S = 90
CLIENT_FACTOR = 10  # a client with a secret or a key may push as many requests as this number of networks
_PREFIX = "urn:ietf:params:oauth:request_uri:"
_REQUEST_URI = re.compile(f"{re.escape(_PREFIX)}({SECRET_TOKEN})", re.ASCII)
_STORED = ("client_id", "redirect_uri", "resource", *PARAMETERS)


def has_request_uri(parameters: Parameters | None) -> bool:
    """Returns whether the authorization request refers to a pushed one."""
    return parameters is not None and parameters.ascii_text("request_uri").startswith(_PREFIX)


class PushedAuthorizationRequests:
    def __init__(
        self,
        clients: ClientStore,
        documents: MetadataDocuments,
        authorize: Authorize,
        proofs: DpopProofs,
        database: Database,
        per_minute: int,
    ) -> None:
        """``per_minute`` limits the requests of a network whose clients do not authenticate; 0 means no limit."""
        self._clients = clients
        self._documents = documents
        self._authorize = authorize
        self._proofs = proofs
        self._database = database
        self._rate = RateLimiter(database, "pushed authorization", per_minute)
        self._client_counter = EventCounter(database)
        self._client_limit = per_minute * CLIENT_FACTOR

    async def push(
        self,
        credentials: ClientCredentials,
        fields: dict[str, str | list[str]],
        address: Address,
        proof: DpopProof | None = None,
    ) -> dict[str, Any]:
        """Validates the request like the authorization endpoint, stores it, and returns the response.

        With a DPoP proof, the code will be bound to its key, like with the parameter dpop_jkt.
        """
        client = await self._authenticate(credentials, str(fields.get("redirect_uri", "")), address)
        if "request_uri" in fields:
            raise InvalidRequest("request_uri: expected none in a pushed request")
        fields = fields | {"client_id": client.client_id}
        if proof and fields.setdefault("dpop_jkt", proof.jkt) != proof.jkt:
            raise InvalidDpopProof("dpop_jkt: expected the thumbprint of the key of the DPoP proof")
        parameters = Parameters.from_fields(fields)
        try:
            _, redirect = await self._authorize.find_client(parameters, address)
            await self._authorize.validate(parameters, client, redirect, is_pushed=True)
        except InvalidRedirectUri as error:
            raise InvalidRequest(error.reason) from None
        except AuthorizationError as error:
            raise InvalidPushedRequest(error) from None
        if proof:
            await self._proofs.use(proof, client.rules)
        return {"request_uri": await self._save(client, parameters), "expires_in": LIFETIME_S}

    async def use(self, parameters: Parameters) -> Parameters:
        """Returns the parameters that were pushed. All others of the request are ignored, as RFC 9101 demands.

        Raises AuthorizationFinished if the request URI was used, has expired, or belongs to another client.
        """
        match = _REQUEST_URI.fullmatch(parameters.ascii_text("request_uri"))
        client_id = parameters.ascii_text("client_id")
        query = None
        if match and is_client_id(client_id):
            query = await use_pushed_request(self._database, match[1], client_id)
        pushed = Parameters.read(query) if query else None
        if pushed is None:
            raise AuthorizationFinished
        return pushed

    async def _authenticate(self, credentials: ClientCredentials, redirect_uri: str, address: Address) -> Client:
        """Raises InvalidClient, or TooManyPushedRequests."""
        async with self.count_failures(address):
            client = await self._find_client(credentials.client_id, address)
            matched = self._clients.authenticate(client, credentials, redirect_uri) if client else None
            if client is None or matched is None:
                raise InvalidClient(credentials.scheme)
        if matched:
            await self._count_client(client)
        else:  # a public client, whose id anybody may send
            await self._count_network(address)
        return client

    @asynccontextmanager
    async def count_failures(self, address: Address) -> AsyncIterator[None]:
        """Counts a failed authentication. Raises TooManyPushedRequests instead of its error beyond the limit."""
        try:
            yield
        except (InvalidClient, InvalidRequest):
            await self._count_network(address)
            raise

    async def _find_client(self, client_id: str, address: Address) -> Client | None:
        try:
            return await self._documents.find_client(client_id, address)
        except InvalidRedirectUri as error:  # its metadata document cannot be used
            raise InvalidRequest(error.reason) from None

    async def _count_network(self, address: Address) -> None:
        if wait_s := await self._rate.add(address):
            raise TooManyPushedRequests(wait_s)

    async def _count_client(self, client: Client) -> None:
        if self._client_limit:
            count = await self._client_counter.add(digest(f"pushed authorization of {client.client_id}"))
            if count.number > self._client_limit:
                THROTTLED_REQUESTS.add("pushed authorization of a client")
                raise TooManyPushedRequests(count.seconds_left)

    async def _save(self, client: Client, parameters: Parameters) -> str:
        secret = secret_token()
        stored = {name: values for name in _STORED if (values := parameters.values.get(name.encode()))}
        query = urlencode(stored, doseq=True).encode()
        if not await save_pushed_request(self._database, secret, client.client_id, query, LIFETIME_S):
            raise InvalidClient  # the client was deleted during the request
        return _PREFIX + secret
