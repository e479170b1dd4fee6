"""Creates service JWTs of applications, and user JWTs signed with the key of the service."""

import base64
import hashlib
import hmac
import time
from functools import cache
from typing import Any

import jwt as pyjwt

from sso.core.jwt import Signer
from sso.core.keys import GENERATE, PrivateKey, algorithm_of, key_id, load_private, public_pem
from sso.keys.store import purpose
from sso.services import Services
from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, Studio

DAY = 86400


class ServiceKey:
    """A key pair of an application."""

    def __init__(self, algorithm: str = "ES256", private: PrivateKey | None = None) -> None:
        self.private: PrivateKey = private or GENERATE[algorithm]()
        self.pem = public_pem(self.private.public_key())
        self.kid = key_id(self.private.public_key())

    def sign(self, server: Server, app_id: Any, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        now = int(time.time())
        payload = {"typ": "service_token", "app_id": app_id, "aud": server.base_url, "iat": now, "exp": now + 600}
        payload = {name: value for name, value in (payload | claims).items() if value is not None}
        algorithm = algorithm_of(self.private.public_key())
        return pyjwt.encode(payload, self.private, algorithm=algorithm, headers={"kid": self.kid} | (headers or {}))

    def trusted_by(self, studio: Studio, app_id: int) -> "ServiceKey":
        data = {"application_id": app_id, "service_meta": {"public_key": self.pem}}
        assert studio.root.call("application", action="save", data=data).status == 200
        return self


@cache
def signer(server: Server) -> Signer:
    """The signing key of the service."""

    async def read(services: Services) -> Signer:
        key = (await services.key_store.published())[-1]
        private = load_private(services.keyring.decrypt(purpose(key.kid), key.private_sealed))
        return Signer(key.kid, private, key.algorithm)

    return server.run_with_services(read)


def user_jwt(server: Server, user_id: str, factor: str | None = FACTOR, **claims: Any) -> str:
    """A user JWT with these claims instead of the usual ones; None removes a claim."""
    now = int(time.time())
    payload = {
        "typ": "user_token", "iss": server.base_url, "sub": user_id, "uid": user_id, "iat": now - 10, "exp": now + 600,
        "jti": "1", "nick": "", "auth": "login", "fac": factor and factor_digest(factor),
    }  # fmt: skip
    return signer(server).sign({name: value for name, value in (payload | claims).items() if value is not None})


def expired_jwt(server: Server, user_id: str, days: float, **claims: Any) -> str:
    """A user JWT that expired this many days ago."""
    end = int(time.time() - days * DAY)
    return user_jwt(server, user_id, iat=end - 3600, exp=end, **claims)


def factor_digest(factor: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(factor.encode()).digest()).decode().rstrip("=")


def ip_headers(key: dict[str, Any], address: str, at: float | None = None) -> dict[str, str]:
    """The headers of a server that acts for a client at this address."""
    moment = int(time.time() if at is None else at)
    created = hmac.new(key["hash"].encode(), f"{address}\n{moment}".encode(), hashlib.sha256).hexdigest()
    return {"Ip": address, "Signature": f"{key['id']}:{moment}:{created}"}
