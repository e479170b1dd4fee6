"""Runs a command on a server: signs in with the stored tokens, and turns refusals into failures of the command."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import trio
from msgspec import Struct

from sso.cli.context import CommandFailure, plain_failures
from sso.cli.logins import Logins, credentials_of, renewal_of, token_of
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
from sso.client.credentials import Credentials, SignIn
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


class StoredSignIn(Struct):
    """A user whose tokens are in the file. One command at a time renews them, always the newest ones."""

    url: str
    logins: Logins
    credentials: BrowserLogin | SessionToken

    def headers(self) -> SignIn:
        if self.credentials.jwt.is_valid:
            return (yield from self.credentials.headers())
        with self.logins.locked():
            is_stored = self._read_newer()
            before = renewal_of(self.credentials)
            try:
                return (yield from self.credentials.headers())
            finally:  # a refresh token that was replaced is stored, although a later request failed
                if is_stored and (renewed := renewal_of(self.credentials)) != before:
                    self.logins.update(self.url, **renewed)

    def forget(self, refused: Mapping[str, str]) -> bool:
        return self.credentials.forget(refused)

    def _read_newer(self) -> bool:
        """Takes the tokens of the file if another command has renewed them.

        Returns False if the file no longer has this sign-in: the user has signed out, or signed in as another user.
        """
        login = self.logins.get(self.url)
        stored = credentials_of(self.url, login) if login and login.get("factor") == self.credentials.factor else None
        if not isinstance(stored, BrowserLogin | SessionToken):
            return False
        if token_of(stored) != token_of(self.credentials):
            self.credentials = stored
        return True


def _signed_in(url: str, logins: Logins) -> Credentials:
    """Returns credentials with a token that is valid for the time of a command."""
    credentials = credentials_of(url, logins.find(url))
    if isinstance(credentials, BrowserLogin | SessionToken):
        credentials = StoredSignIn(url, logins, credentials)
    with SsoClient(url) as api:
        api.run(credentials.headers())
    return credentials
