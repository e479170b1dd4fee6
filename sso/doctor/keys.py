"""Checks of the master key and of the signing key."""

from collections.abc import Iterator

import trio

from sso.config import Settings
from sso.core.encryption import EncryptionError
from sso.db.errors import DatabaseError
from sso.db.standalone import fetch_value
from sso.doctor.finding import Finding
from sso.keys.master_key import open_keyring
from sso.services import open_services


def keys(settings: Settings, dsn: str) -> Iterator[Finding]:
    """Checks the keys without creating any: the first start of the service creates them."""
    in_use = fetch_value(dsn, "SELECT count(*) FROM signing_keys") > 0
    from_backup = "restore the master key that encrypted the secrets in the database (secret.key or SSO_SECRET_KEY)"
    if settings.secret_key is None and not settings.key_file.exists():
        detail = f"{settings.key_file} is missing" if in_use else "is created at the first start"
        yield Finding("master key", not in_use, detail, from_backup)
        return
    try:
        yield Finding("master key", True, f"{open_keyring(settings).keys[0].id} is in use")
    except EncryptionError as error:
        yield Finding("master key", False, str(error), f"correct it, or {from_backup}")
        return
    try:
        signer = f"{trio.run(_signer, settings, dsn)} signs" if in_use else "is created at the first start"
        yield Finding("signing key", True, signer)
    except (EncryptionError, DatabaseError) as error:
        yield Finding("signing key", False, str(error), from_backup)


async def _signer(settings: Settings, dsn: str) -> str:
    async with open_services(settings, dsn) as services:
        try:
            await services.keys.load()
            return services.keys.signer().kid
        except (EncryptionError, DatabaseError) as error:
            failure = error
    raise failure  # outside the nursery, which would wrap it in an ExceptionGroup
