"""Users of a realm export of Keycloak (``kc.sh export``), or of one of its files ``REALM-users-0.json``."""

import base64
import json
from typing import Any, TextIO

from sso.cli.user_files.json_stream import JsonStream
from sso.cli.user_files.model import (
    Entries,
    JsonObject,
    NotImported,
    SourceUser,
    names_of,
    nickname,
    objects_of,
    require_address,
    text_of,
)
from sso.cli.user_files.reading import convert_each
from sso.core.password_hashes.argon2_hash import argon2_text
from sso.core.password_hashes.model import UnusableHash, decode_base64
from sso.core.password_hashes.pbkdf2_hash import passlib_text

PBKDF2 = {"pbkdf2": "sha1", "pbkdf2-sha1": "sha1", "pbkdf2-sha256": "sha256", "pbkdf2-sha512": "sha512"}
TEMPORARY = "the password is temporary and was not imported; the user sets a new one by mail"


def read_keycloak(file: TextIO) -> Entries:
    return convert_each(JsonStream(file).users(), _user)


def _user(user: JsonObject) -> SourceUser:
    if user.get("serviceAccountClientId"):
        raise NotImported("the account of a client, not of a person")
    login = require_address(text_of(user, "email") or _address(text_of(user, "username")))
    attributes = user.get("attributes")
    locale = names_of(attributes, "locale") if isinstance(attributes, dict) else []
    source = SourceUser(
        {
            "login": login,
            "nick": nickname(login, text_of(user, "username")),
            "email_verified": user.get("emailVerified") is True and bool(text_of(user, "email")),
            "disabled": user.get("enabled") is False,
            **({"lang": locale[0]} if locale else {}),
        },
        text_of(user, "id"),
        _roles(user),
        names_of(user, "groups"),
        [
            {
                "provider": text_of(item, "identityProvider"),
                "subject": text_of(item, "userId"),
                "name": text_of(item, "userName"),
            }
            for item in objects_of(user, "federatedIdentities")
        ],
    )
    for credential in objects_of(user, "credentials"):
        _add_credential(source, user, credential)
    return source


def _address(name: str) -> str:
    return name if "@" in name else ""


def _roles(user: JsonObject) -> list[str]:
    """Returns the roles of the realm, and those of clients as ``client/role``."""
    clients = user.get("clientRoles")
    pairs = clients.items() if isinstance(clients, dict) else ()
    return [
        *names_of(user, "realmRoles"),
        *(f"{client}/{role}" for client, roles in pairs for role in names_of({"": roles}, "")),
    ]


def _add_credential(source: SourceUser, user: JsonObject, credential: JsonObject) -> None:
    kind = text_of(credential, "type")
    secret, data = _decoded(credential, "secretData"), _decoded(credential, "credentialData")
    if kind == "password":
        if "UPDATE_PASSWORD" in names_of(user, "requiredActions") or credential.get("temporary") is True:
            source.notes.append(TEMPORARY)
            return
        try:
            source.fields["password_hash"] = _password_hash(credential, secret, data)
        except UnusableHash as error:
            source.notes.append(f"the password was not imported: {error}")
    elif kind in ("otp", "totp") and _is_usual_totp(data):
        source.fields["totp_secret"] = _totp_secret(text_of(secret, "value"), data)
    else:
        source.notes.append(f"a second factor of type {kind[:40] or 'unknown'} was not imported")


def _password_hash(credential: JsonObject, secret: JsonObject, data: JsonObject) -> str:
    """Realms of old versions have the parts beside each other in the credential."""
    digest = decode_base64(text_of(secret, "value") or text_of(credential, "hashedSaltedValue"), "digest", minimum=1)
    salt = decode_base64(text_of(secret, "salt") or text_of(credential, "salt"), "salt")
    algorithm = text_of(data, "algorithm") or text_of(credential, "algorithm")
    iterations = data.get("hashIterations", credential.get("hashIterations"))
    if algorithm in PBKDF2 and isinstance(iterations, int):
        return passlib_text(PBKDF2[algorithm], iterations, salt, digest)
    if algorithm == "argon2":
        return _argon2(data.get("additionalParameters"), str(iterations), salt, digest)
    raise UnusableHash(f"unknown algorithm {algorithm[:40]}")


def _argon2(parameters: Any, iterations: str, salt: bytes, digest: bytes) -> str:
    values = parameters if isinstance(parameters, dict) else {}

    def parameter(name: str, usual: str) -> str:
        return next(iter(names_of(values, name)), usual)

    version = 16 if parameter("version", "1.3") == "1.0" else 19
    memory, parallelism = parameter("memory", "7168"), parameter("parallelism", "1")
    return argon2_text(parameter("type", "id"), version, memory, iterations, parallelism, salt, digest)


def _is_usual_totp(data: JsonObject) -> bool:
    """Whether authenticator apps and this service compute the same codes: six digits, 30 seconds, SHA-1."""
    usual = {"subType": "totp", "digits": 6, "period": 30, "algorithm": "HmacSHA1"}
    return all(data.get(name, value) == value for name, value in usual.items())


def _totp_secret(value: str, data: JsonObject) -> str:
    """Keycloak keys the codes with the characters of the secret, unless it names an encoding."""
    if data.get("secretEncoding") == "BASE32":
        return value
    return base64.b32encode(value.encode()).decode().rstrip("=")


def _decoded(credential: JsonObject, name: str) -> JsonObject:
    """Returns a member that is an object, or a text with JSON."""
    value = credential.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    return value if isinstance(value, dict) else {}
