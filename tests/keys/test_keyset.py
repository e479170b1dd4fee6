"""The signing keys in memory: signer, published set and reloading."""

import orjson
import pytest
import trio
from structlog.testing import capture_logs

from sso.bus.wiring import build_bus
from sso.core.encryption import EncryptionError, Keyring, MasterKey
from sso.core.jwt import Verifier
from sso.db.database import Database
from sso.db.statement import Statement
from sso.keys import store
from sso.keys.keyset import KeySet
from sso.keys.rotation import KeyRotation
from sso.keys.store import KeyStore
from sso.services import Services
from tests.kit.conditions import until_true

PRIVATE_MEMBERS = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}
KEYS = Statement("SELECT count(*) FROM signing_keys")
END_PUBLICATION = Statement("UPDATE signing_keys SET published_until = now() WHERE kid = :kid")


def published(keys: KeySet) -> list[str]:
    return [key["kid"] for key in orjson.loads(keys.jwks)["keys"]]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_tokens_of_every_algorithm_verify_with_the_published_set(
    database: Database, keyring: Keyring, algorithm: str
) -> None:
    keys = KeySet(KeyStore(database), keyring)
    await KeyRotation(database, build_bus(database), keyring).ensure_signing_keys(algorithm)
    await keys.load()
    token = keys.signer().sign({"typ": "t", "iss": "i", "iat": 1000, "exp": 2000})
    assert Verifier("t", issuer="i").verify(token, keys.find, 1500)["kid"] == published(keys)[0]
    (jwk,) = orjson.loads(keys.jwks)["keys"]
    assert jwk["alg"] == algorithm


async def test_published_set_has_no_private_parameters(services: Services) -> None:
    for algorithm in ("RS256", "ES256", "EdDSA"):
        await services.key_rotation.rotate(algorithm, 3600)
    await services.keys.load()
    jwks = orjson.loads(services.keys.jwks)
    assert set(jwks) == {"keys"}
    assert len(jwks["keys"]) == 4
    for jwk in jwks["keys"]:
        assert not PRIVATE_MEMBERS & set(jwk)
    assert b"PRIVATE" not in services.keys.jwks


async def test_private_key_is_encrypted_in_the_database(services: Services) -> None:
    (key,) = await services.key_store.all()
    assert "PRIVATE" not in key.private_sealed
    assert "PRIVATE KEY" in services.keyring.decrypt(store.purpose(key.kid), key.private_sealed)


async def test_concurrent_starts_create_one_key(database: Database, keyring: Keyring) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(KeyRotation(database, build_bus(database), keyring).ensure_signing_keys, "ES256")
    assert await database.value(KEYS) == 1


async def test_key_is_found_by_its_exact_kid_only(services: Services) -> None:
    (kid,) = published(services.keys)
    assert services.keys.find(kid) is not None
    assert services.keys.find_pem(kid) == (await services.key_store.all())[0].public_pem
    for other in (kid + " ", kid[:-1], kid.swapcase(), "", "../" + kid, "%"):
        assert services.keys.find(other) is None
        assert services.keys.find_pem(other) is None


async def test_key_past_its_publication_is_not_in_the_set(services: Services) -> None:
    (old,) = published(services.keys)
    new = await services.key_rotation.rotate("ES256", 3600)
    await services.database.value(END_PUBLICATION, kid=old)
    await services.keys.load()
    assert published(services.keys) == [new]
    assert services.keys.find(old) is None


async def test_running_key_set_reloads_after_a_notification(
    services: Services, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sso.bus.bus.RESCAN_S", 3600.0)  # without the periodic reload
    other = KeySet(services.key_store, services.keyring)
    await nursery.start(services.bus.run)
    await services.bus.connected.wait()
    await nursery.start(other.run, services.bus)
    kid = await services.key_rotation.rotate("ES256", 3600)
    await until_true(lambda: other.find(kid) is not None)


async def test_load_fails_without_the_master_key(services: Services) -> None:
    other = KeySet(services.key_store, Keyring([MasterKey.generate()]))
    with pytest.raises(EncryptionError, match=services.keyring.keys[0].id):
        await other.load()


POISONED = {
    "sealed for another row": "private_sealed",
    "no sealed value": "'nonsense'",
    "no key": "NULL",  # replaced by a sealed text that is not a key
    "another algorithm": "private_sealed",
}


@pytest.mark.parametrize("kind", POISONED)
async def test_damaged_key_is_skipped_and_the_others_sign(services: Services, kind: str) -> None:
    (good,) = await services.key_store.all()
    sealed = POISONED[kind].replace("NULL", f"'{services.keyring.encrypt(store.purpose('damaged'), 'no key')}'")
    if kind == "another algorithm":  # the encrypted private key is intact
        kid = await services.key_rotation.rotate("EdDSA", 3600)
        await services.database.run_sql("UPDATE signing_keys SET algorithm = 'RS256' WHERE kid = $1", [kid])
    else:
        kid = "damaged"
        insert = f"""INSERT INTO signing_keys (kid, algorithm, public_pem, private_sealed, signs_from)
            SELECT 'damaged', algorithm, public_pem, {sealed}, signs_from FROM signing_keys"""
        await services.database.run_sql(insert, [])
    for _ in range(2):
        fresh = KeySet(services.key_store, services.keyring)
        with capture_logs() as logs:
            await fresh.load()
            await fresh.load()
        assert [(entry["event"], entry["kid"]) for entry in logs] == [("keys.decryption_failed", kid)]
        assert published(fresh) == [good.kid]
        assert fresh.signer().kid == good.kid
