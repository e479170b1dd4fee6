"""Records at the limits: an application with the most roles and condition nodes, many users, and the largest keys."""

import base64
import functools
import hashlib
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric import rsa

from sso.core.keys import public_jwk, public_pem
from sso.perm.input.schema import MAX_ROLES
from tests.cost.callers import Caller
from tests.kit.browser import query
from tests.kit.rsa_keys import rsa_key
from tests.perm.endpoints.conftest import Studio

USERS = 10_000
# With the group and one role of 256 nodes, 19,879 of the 20,000 nodes that an application may have.
_NODES = 15
_ROLES = f"""WITH role AS (
    INSERT INTO roles (application_id, name, meta, condition) SELECT $1, 'r' || n,
        jsonb_build_object('private_data', (
            SELECT jsonb_object_agg('rule' || n || '_' || k, '{{"value": true}}'::jsonb) FROM generate_series(1, 8) k)),
        jsonb_build_object('or', (
            SELECT jsonb_agg(jsonb_build_object('tag', 't' || n || '_' || k)) FROM generate_series(2, {_NODES}) k))
    FROM generate_series(0, {MAX_ROLES - 1}) n
) UPDATE applications SET revision = revision + 1 WHERE application_id = $1"""
_USERS = f"""INSERT INTO users (user_id, login, login_key)
    SELECT (5000000 + n)::text, 'many' || n || '@example.com', 'many' || n || '@example.com'
    FROM generate_series(1, {USERS}) n"""
_numbers = itertools.count(1)
_EXPONENT = 4294967291  # the largest that is accepted and prime


@dataclass(frozen=True)
class LargeRecords:
    application_id: int
    project_id: str
    group_id: str
    user_ids: Sequence[str]
    read_at: int  # a moment at which the application had another schema, and all its roles


def create_large_records(studio: Studio, administrator: Caller, player: Caller) -> LargeRecords:
    assert administrator.user is not None
    assert player.user is not None
    project_id = studio.project(administrator.user)
    application_id = studio.application(project_id)
    query(studio.server, _ROLES, application_id)
    held = [{"name": f"r{number}"} for number in range(0, MAX_ROLES, 10)]
    studio.save_data(player.user, application_id, roles=held)
    studio.give_secret(player.user, application_id, roles={"canRead": "self"}, private={"canRead": "self"})
    conditions = [{"title": f"c{number}", "condition": any_of(256, f"g{number}")} for number in range(18)]
    user_ids = [str(5_000_000 + number) for number in range(1, USERS + 1)]
    group_id = studio.group(project_id, *user_ids[:100], conditions=conditions)
    time.sleep(1.1)
    read_at = int(time.time()) - 1
    saved = studio.root.call("meta/schema", action="save", application_id=application_id, data={"public_data": {}})
    assert saved.status == 200, saved.body
    return LargeRecords(application_id, project_id, group_id, user_ids, read_at)


def create_users(studio: Studio) -> None:
    """Creates the users of ``user_ids``. A write of a schema or role concerns all users, so it should come before."""
    query(studio.server, _USERS)


def any_of(nodes: int, tag: str) -> dict[str, Any]:
    """A condition with this many nodes."""
    return {"or": [{"tag": f"{tag}_{number}"} for number in range(nodes - 1)]}


def rules(count: int, description: str = "", prefix: str = "rule") -> dict[str, Any]:
    rule = {"value": True} | ({"description": description} if description else {})
    return {f"{prefix}{number}": rule for number in range(count)}


@dataclass(frozen=True)
class LargestKey:
    """An RSA key of 8,192 bits, which has eight primes, so that it need not be searched for."""

    primes: tuple[int, ...]

    @functools.cached_property
    def public(self) -> rsa.RSAPublicKey:
        return rsa.RSAPublicNumbers(_EXPONENT, prod(self.primes)).public_key()

    @property
    def pem(self) -> str:
        return public_pem(self.public)

    def jwk(self, kid: str) -> dict[str, Any]:
        return public_jwk(self.public, kid)

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        """A JWT (RS256) with the claims."""
        text = ".".join(_base64url(orjson.dumps(part)) for part in ({"alg": "RS256", **header}, claims))
        length = (self.public.key_size + 7) // 8
        info = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(text.encode()).digest()
        padded = b"\x00\x01" + b"\xff" * (length - len(info) - 3) + b"\x00" + info
        return f"{text}.{_base64url(self._power(int.from_bytes(padded)).to_bytes(length))}"

    def _power(self, number: int) -> int:
        """The number to the power of the private exponent, by the Chinese remainder theorem."""
        modulus, result = prod(self.primes), 0
        exponent = pow(_EXPONENT, -1, lcm(*(prime - 1 for prime in self.primes)))
        for prime in self.primes:
            rest = modulus // prime
            result += pow(number, exponent % (prime - 1), prime) * rest * pow(rest, -1, prime)
        return result % modulus


@functools.cache
def largest_key() -> LargestKey:
    numbers = [rsa_key(number).private_numbers() for number in range(120)]
    primes = sorted({prime for key in numbers for prime in (key.p, key.q)})
    return LargestKey(tuple(primes[:8]))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
