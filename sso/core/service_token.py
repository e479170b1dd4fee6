"""Access tokens of service clients: opaque, with the id of their application in front."""

import re
from typing import NamedTuple

from sso.core.ids import MAX_APPLICATION_ID, SECRET_TOKEN, secret_token

_FORM = re.compile(rf"app([1-9][0-9]{{0,9}})\.{SECRET_TOKEN}", re.ASCII)


# Scopes of tokens that have no rights of the application, but those of the receiver of signals.
SSF_READ, SSF_MANAGE = SERVICE_SCOPES = ("ssf.read", "ssf.manage")


class ServiceIdentity(NamedTuple):
    """The author of a request that is made for an application."""

    application_id: int
    client_id: str | None = None  # the service client, if the request has its access token and no service JWT


def new_service_token(application_id: int) -> str:
    return f"app{application_id}.{secret_token()}"


def claimed_application(token: str) -> int:
    """Returns the application that an unverified token names, or 0 if it is not a token of this form."""
    match = _FORM.fullmatch(token)
    return int(match[1]) if match and int(match[1]) <= MAX_APPLICATION_ID else 0
