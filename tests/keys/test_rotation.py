"""Rotation of signing keys: a new key is published before it signs, and the old one stays published."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jwt as pyjwt
import orjson
import pytest
import trio

from sso.core.jwt import InvalidToken, Signer, Verifier
from sso.db.statement import Statement
from sso.keys import rotation
from sso.keys.keyset import KeySet
from sso.keys.rotation import LastKey
from sso.services import Services
from tests.kit.builders import PASSWORD
from tests.kit.constants import changed
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until

SETS = ("/proxy/oauth/keys", "/api/permissions/keys")
LOGIN = "/proxy/api/login"
LEAD_S = 6  # of the server of this file: longer than a worker takes that gets no notification


def published(keys: KeySet) -> list[str]:
    return [key["kid"] for key in orjson.loads(keys.jwks)["keys"]]


def sign(services: Services) -> str:
    return services.keys.signer().sign({"typ": "t", "iss": "i", "iat": 1000, "exp": 2000})


def verifies(services: Services, token: str) -> bool:
    try:
        Verifier("t", issuer="i").verify(token, services.keys.find, 1500)
    except InvalidToken:
        return False
    return True


async def skip_lead(services: Services) -> None:
    """Lets new keys sign at once when they are loaded."""
    await services.database.value(Statement("UPDATE signing_keys SET signs_from = signs_from - interval '1 minute'"))


def test_lead_is_at_most_15_seconds() -> None:
    assert rotation.LEAD_S == 15


def signer_after(keys: KeySet, seconds: float, algorithm: str | None = None) -> Signer:
    """Returns the signer after some time, without waiting or reloading."""
    later = trio.current_time() + seconds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trio, "current_time", lambda: later)
        return keys.signer(algorithm) if algorithm else keys.signer()


async def test_new_key_is_published_before_it_signs(services: Services) -> None:
    old = services.keys.signer().kid
    new = await services.key_rotation.rotate("EdDSA", 3600)
    await services.keys.load()
    assert published(services.keys) == [old, new]
    assert services.keys.signer().kid == old
    later = signer_after(services.keys, rotation.LEAD_S + 0.1)  # without a reload
    assert (later.kid, later.algorithm) == (new, "EdDSA")


async def test_old_key_stays_published_and_its_tokens_verify(services: Services) -> None:
    token = sign(services)
    await services.key_rotation.rotate("ES256", 3600)
    await skip_lead(services)
    await services.keys.load()
    assert len(published(services.keys)) == 2
    assert verifies(services, token)
    assert verifies(services, sign(services))


async def test_old_key_stays_published_until_30_days_after_its_tokens_expire(services: Services) -> None:
    old = services.keys.signer().kid
    await services.key_rotation.rotate("ES256", 5000)
    (key,) = [key for key in await services.key_store.all() if key.kid == old]
    assert key.published_until is not None
    left = key.published_until.timestamp() - time.time()
    assert left == pytest.approx(15 + 5000 + 30 * 86400, abs=60)


async def test_two_rotations_in_a_row_sign_in_order(services: Services) -> None:
    first = services.keys.signer().kid
    second = await services.key_rotation.rotate("ES256", 3600)
    third = await services.key_rotation.rotate("ES256", 3600)
    await services.keys.load()
    assert published(services.keys) == [first, second, third]
    assert signer_after(services.keys, rotation.LEAD_S + 0.1).kid == third
    # Only the newest key has no end: another rotation does not extend the publication of older keys.
    assert [key.published_until is None for key in await services.key_store.all()] == [False, False, True]


async def test_tokens_of_a_retired_key_are_rejected(services: Services) -> None:
    old, token = services.keys.signer().kid, sign(services)
    new = await services.key_rotation.rotate("ES256", 3600)
    await skip_lead(services)
    assert await services.key_rotation.retire(old)
    await services.keys.load()
    assert published(services.keys) == [new]
    assert not verifies(services, token)
    assert verifies(services, sign(services))


async def test_last_signing_key_cannot_be_retired(services: Services) -> None:
    only = services.keys.signer().kid
    with pytest.raises(LastKey):
        await services.key_rotation.retire(only)
    new = await services.key_rotation.rotate("ES256", 3600)
    with pytest.raises(LastKey):  # the publication of the older key ends
        await services.key_rotation.retire(new)
    assert await services.key_rotation.retire(only)
    with pytest.raises(LastKey):
        await services.key_rotation.retire(new)


async def test_side_key_signs_only_for_its_algorithm(services: Services) -> None:
    await services.key_rotation.ensure_signing_keys("ES256", sides=("ES256", "EdDSA"))
    await services.keys.load()
    main_kids = services.keys.signer()
    edwards, elliptic = services.keys.signer("EdDSA"), services.keys.signer("ES256")
    assert (main_kids.algorithm, edwards.algorithm, elliptic.algorithm) == ("ES256", "EdDSA", "ES256")
    assert len({main_kids.kid, edwards.kid, elliptic.kid}) == 3
    assert services.keys.signer("RS256") == main_kids  # there is no side key


async def test_rotating_a_side_key_does_not_affect_other_keys(services: Services) -> None:
    await services.key_rotation.ensure_signing_keys("ES256", sides=("EdDSA",))
    await services.keys.load()
    main_kids, side = services.keys.signer().kid, services.keys.signer("EdDSA").kid
    new = await services.key_rotation.rotate("EdDSA", 3600, side=True)
    await services.keys.load()
    assert services.keys.signer("EdDSA").kid == side
    after_s = rotation.LEAD_S + 0.1
    assert signer_after(services.keys, after_s).kid == main_kids
    assert signer_after(services.keys, after_s, "EdDSA").kid == new
    with pytest.raises(LastKey):
        await services.key_rotation.retire(new)
    assert await services.key_rotation.retire(side)


async def test_retiring_an_unused_key_changes_nothing(services: Services) -> None:
    old = services.keys.signer().kid
    await services.key_rotation.rotate("ES256", 3600)
    assert not await services.key_rotation.retire("unknown")
    assert await services.key_rotation.retire(old)
    assert not await services.key_rotation.retire(old)


async def test_new_key_signs_early_if_the_old_key_is_retired(services: Services) -> None:
    """A leaked key must stop signing at once, not after the lead of the next key."""
    leaked = services.keys.signer().kid
    new = await services.key_rotation.rotate("ES256", 3600)
    assert await services.key_rotation.retire(leaked)
    await services.keys.load()
    assert services.keys.signer().kid == new
    assert verifies(services, sign(services))


@pytest.fixture(scope="module")
def rotating(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this file with two workers."""
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2", "SSO_RATE_LOGIN": "0"}
    folder: Path = tmp_path_factory.mktemp("rotating")
    with running(folder, **settings, **changed({"sso.keys.rotation.LEAD_S": LEAD_S})) as server:
        server.apply({"users": [{"login": "ann@example.com", "password": PASSWORD}]})
        yield server


def published_sets(server: Server, times: int = 12) -> set[str]:
    """Returns the sets that many connections get at both paths, so that both workers answer some of them."""
    texts = set()
    for _ in range(times):
        with server.client() as client:
            for path in SETS:
                answer = client.get(path)
                assert answer.status_code == 200
                texts.add(answer.text)
    return texts


def kids(text: str) -> set[str]:
    return {key["kid"] for key in orjson.loads(text)["keys"]}


def main_kids(text: str) -> set[str]:
    """Returns the ids of the main keys."""
    return {key["kid"] for key in orjson.loads(text)["keys"] if key["alg"] == "RS256"}


def test_both_paths_publish_the_same_set(rotating: Server) -> None:
    (text,) = published_sets(rotating)
    by_algorithm = {jwk["alg"]: set(jwk) - {"kid", "use", "alg", "kty"} for jwk in orjson.loads(text)["keys"]}
    assert by_algorithm == {"RS256": {"n", "e"}, "ES256": {"crv", "x", "y"}, "EdDSA": {"crv", "x"}}
    with rotating.client() as client:
        for path in SETS:
            answer = client.get(path)
            assert answer.headers["Content-Type"] == "application/json"
            # Clients that cache the set this long, from workers that reload every 5 s, have a new key before it signs.
            assert answer.headers["Cache-Control"] == "public, max-age=10"


def test_all_workers_publish_a_new_key_before_any_token_uses_it(rotating: Server) -> None:
    (before,) = published_sets(rotating)
    seen: list[tuple[str, set[str]]] = []
    stop = threading.Event()

    def log_in_repeatedly() -> None:
        while not stop.is_set():
            with rotating.client() as client:
                fields = {"login": "ann@example.com", "password": PASSWORD, "factor": "d"}
                token = client.post(LOGIN, json=fields).json()["jwt"]
            with rotating.client() as other:  # possibly another worker
                seen.append((pyjwt.get_unverified_header(token)["kid"], kids(other.get(SETS[len(seen) % 2]).text)))
            time.sleep(0.1)

    workers = rotating.workers()
    thread = threading.Thread(target=log_in_repeatedly)
    thread.start()
    try:
        began = time.monotonic()
        new = rotating.sso("key", "rotate", "--alg", "ES256").stdout.split()[0]
        both = kids(before) | {new}
        assert until(lambda: [kids(text) for text in published_sets(rotating)] == [both])
        assert until(lambda: seen and seen[-1][0] == new), "the new key never signed"
        assert time.monotonic() - began > LEAD_S
        count = len(seen)
        assert until(lambda: len(seen) > count + 4)
    finally:
        stop.set()
        thread.join()
    assert all(kid in published_then for kid, published_then in seen)
    assert {kid for kid, _ in seen} == main_kids(before) | {new}
    assert rotating.workers() == workers  # no worker was restarted
    (after,) = published_sets(rotating)
    assert kids(after) == kids(before) | {new}
