"""The values of ``auth`` of a browser session: how the user signed in. ``amr`` and ``acr`` are derived from them.

The data of a login by API has only ``login`` and ``otp``, as the specification shows.
"""

PASSWORD = "login"  # noqa: S105 - a method
PASSWORD_AND_CODE = "otp"  # noqa: S105 - a code of an app, of a mail, or a recovery code
PASSWORD_AND_PASSKEY = "login+passkey"  # noqa: S105
PASSKEY = "passkey"  # alone; it has verified its user
UPSTREAM_AUTH = "upstream"  # another provider
UPSTREAM_AND_CODE = "upstream+otp"
UPSTREAM_AND_PASSKEY = "upstream+passkey"

_WITH_CODE = {PASSWORD: PASSWORD_AND_CODE, UPSTREAM_AUTH: UPSTREAM_AND_CODE}
_WITH_PASSKEY = {PASSWORD: PASSWORD_AND_PASSKEY, UPSTREAM_AUTH: UPSTREAM_AND_PASSKEY}


def with_code(auth: str) -> str:
    """Returns the method with a code as the second factor. Several factors stay as they are."""
    return _WITH_CODE.get(auth, auth)


def with_passkey(auth: str) -> str:
    """Returns the method with a passkey as the second factor. Several factors stay as they are."""
    return _WITH_PASSKEY.get(auth, auth)
