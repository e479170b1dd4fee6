"""Runs a command on a server: signs in with the stored tokens, and turns refusals into failures of the command."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import trio

from sso.cli.context import CommandFailure, plain_failures
from sso.cli.logins import Logins, credentials_of, renewal_of
from sso.cli.records.api import CommandApi
from sso.cli.records.operator_client import command_error
from sso.client import (
    AsyncSsoClient,
    BrowserLogin,
    ClientError,
    RequestRefused,
    SessionToken,
    SignInRequired,
    SsoClient,
)
from sso.client.credentials import Credentials
from sso.client.exchange import UNEXPECTED
from sso.core.printable import printable

T = TypeVar("T")


class ServerApi(AsyncSsoClient, CommandApi):
    """The management API over HTTPS."""


def with_server(server: str, work: Callable[[CommandApi], Awaitable[T]]) -> T:
    logins = Logins()
    url = logins.url(server)

    async def run(credentials: Credentials) -> T:
        async with ServerApi(url, credentials) as api:
            return await work(api)

    try:
        credentials = _signed_in(url, logins)
        with plain_failures(ClientError):
            return trio.run(run, credentials)
    except SignInRequired as error:
        text = printable(error.text)
        raise CommandFailure(f"{url}: {text}; sign in again with `sso --server {url} login`") from None
    except RequestRefused as error:
        raise command_error(error) or CommandFailure(f"{url}: {printable(str(error))}") from None
    except ClientError as error:
        raise CommandFailure(f"{url}: {printable(str(error))}") from None
    except UNEXPECTED as error:
        raise CommandFailure(f"{url}: the answer of the server is not as expected: {error!r}") from None


def _signed_in(url: str, logins: Logins) -> Credentials:
    """Returns credentials with a token that is valid for the time of a command."""
    with logins.locked():
        credentials = credentials_of(url, logins.find(url))
        before = renewal_of(credentials)
        try:
            with SsoClient(url) as api:
                api.run(credentials.headers())
        finally:  # a refresh token that was replaced is stored, although a later request failed
            if (renewed := renewal_of(credentials)) != before:
                logins.update(url, **renewed)
    if isinstance(credentials, BrowserLogin | SessionToken):
        credentials.on_renewal = partial(_store_renewal, url, logins, credentials)
    return credentials


def _store_renewal(url: str, logins: Logins, credentials: Credentials, _token: str) -> None:
    """Stores tokens that are renewed while the command runs."""
    with logins.locked():
        logins.update(url, **renewal_of(credentials))
