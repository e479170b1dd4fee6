"""Fixed pieces of work, whose CPU time in the same run is what the guard compares calls with."""

import hashlib
import hmac
import re
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

import argon2
import orjson
from cryptography.hazmat.primitives.asymmetric import rsa

from scripts.benchmarks.oauth_service import HASH
from sso.core.jwt import Signer

UNIT_S = 0.03
BUSY = 1.4  # seconds that pass for a second of CPU time: more means that other programs use the processor


class Unit(NamedTuple):
    us: float  # CPU time of one piece of work
    contention: float  # seconds that passed for a second of CPU time

    @property
    def is_busy(self) -> bool:
        return self.contention > BUSY


class NativeWork(NamedTuple):
    """CPU time of the expensive functions of libraries. Processors differ more in these than in other work."""

    signature_us: float  # RS256
    hash_us: float  # argon2id, with the costs of the benchmark

    def of_call(self, name: str) -> float:
        """The time that a call spends in them."""
        match name:
            case "refresh":
                return self.signature_us
            case "login by API":
                return self.signature_us + self.hash_us
            case _:
                return 0.0


def measure_unit() -> Unit:
    """Measures what a call does, without the service."""
    text = orjson.dumps({f"name{number}": {"value": [number, "x" * 20], "flag": True} for number in range(20)})
    left, right = socket.socketpair()
    pattern = re.compile(r"name(\d+)")

    def work() -> None:
        left.send(text)
        document = orjson.loads(right.recv(65536))
        found = {key: pattern.match(key) for key in document}
        names = sorted(f"{key}.{match[1]}" for key, match in found.items() if match)
        hmac.new(b"key", ",".join(names).encode(), hashlib.sha256).hexdigest()

    with left, right:
        return _repeat(work, UNIT_S)


def measure_native_work(times: int = 4) -> NativeWork:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    signer = Signer("guard", key, "RS256")
    hasher = argon2.PasswordHasher(int(HASH["SSO_ARGON2_TIME"]), int(HASH["SSO_ARGON2_KIB"]), parallelism=1)
    return NativeWork(
        min(_repeat(lambda: signer.sign({"sub": "1"}), UNIT_S).us for _ in range(times)),
        min(_repeat(lambda: hasher.hash("password"), UNIT_S).us for _ in range(times)),
    )


def _repeat(work: Callable[[], object], seconds: float) -> Unit:
    began, began_cpu, count = time.perf_counter(), time.process_time(), 0
    while time.process_time() - began_cpu < seconds:
        for _ in range(10):
            work()
        count += 10
    used = time.process_time() - began_cpu
    return Unit(used / count * 1e6, (time.perf_counter() - began) / used)
