"""The service JWT: an application speaks for itself, with a key that the service knows for it."""

import time
from functools import partial
from typing import Any

from sso.core.ids import MAX_APPLICATION_ID
from sso.core.jwt import InvalidToken, Signer, Verifier, kid_of, peek_claim
from sso.core.keys import algorithm_of, key_id, load_private
from sso.core.net import Address
from sso.core.verification import VerificationPool
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.credentials.application_keys import ApplicationKeys

TYP = "service_token"
LONGEST_S = 3600
MAX_LENGTH = 4096  # it is read before it is verified, in order to find the key

_ALIVE = Statement(
    """SELECT 1 FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE a.application_id = :application_id AND NOT a.removed AND p.removed IS NOT TRUE"""
)


def app_id_of(token: str) -> int:
    """The application that a service JWT names, before anything in it is believed; 0 if it names none."""
    if len(token) > MAX_LENGTH:
        return 0
    try:
        _, said = peek_claim(token, "app_id")
    except InvalidToken:
        return 0
    return said if type(said) is int and 0 < said <= MAX_APPLICATION_ID else 0


class ServiceJwts:
    def __init__(
        self, database: Database, keys: ApplicationKeys, verifications: VerificationPool, audience: str
    ) -> None:
        self._database = database
        self._keys = keys
        self._verifications = verifications
        self._audience = audience
        self._verifier = Verifier(typ=TYP, audience=audience)

    async def verify(self, token: str, client: Address) -> int:
        """The application that signed it, alive, within the last hour. InvalidToken otherwise.

        Anybody can send one, so a costly verification waits in the queue of the ``client`` that sent it.
        """
        said = app_id_of(token)
        if not said:
            raise InvalidToken("bad app_id")
        # Looked up under the application that it names: a key of one application speaks for no other.
        key = await self._keys.find(said, kid_of(token))
        if key is None:
            raise InvalidToken("unknown kid")
        verify = partial(self._verifier.verify, token, lambda _: key, time.time())
        claims = await self._verifications.run(client, key, verify)
        if claims["exp"] - claims["iat"] > LONGEST_S:
            raise InvalidToken("too long a life")
        if await self._database.value(_ALIVE, application_id=said) is None:
            raise InvalidToken("removed application")
        return said

    def issue(self, application_id: int, private_pem: str) -> str:
        """For an application whose private key the service holds."""
        key = load_private(private_pem)
        now = int(time.time())
        claims: dict[str, Any] = {"typ": TYP, "app_id": application_id, "aud": self._audience}
        signer = Signer(key_id(key.public_key()), key, algorithm_of(key.public_key()))
        return signer.sign({**claims, "iat": now, "exp": now + LONGEST_S})
