"""Runs a command on a server: signs in with the stored tokens, and turns refusals into failures of the command."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from sso.cli.context import CommandFailure, plain_failures
from sso.cli.remote.clients import RemoteClients
from sso.cli.remote.logins import Logins, credentials_of, renewal_of
from sso.cli.remote.permissions import RemoteAudit, RemotePermissions
from sso.cli.remote.state import RemoteState
from sso.cli.remote.users import RemoteUsers
from sso.client import AsyncSsoClient, ClientError, SignInRequired, SsoClient
from sso.client.credentials import Credentials

if TYPE_CHECKING:
    from sso.cli.administration import ServiceAdministration

T = TypeVar("T")


class RemoteAdministration:
    def __init__(self, api: AsyncSsoClient) -> None:
        self.users = RemoteUsers(api)
        self.clients = RemoteClients(api)
        self.audit = RemoteAudit(api, self.users)
        self.permissions = RemotePermissions(api, self.users)
        self.state = RemoteState(api)


def with_remote_administration(server: str, work: "Callable[[ServiceAdministration], Awaitable[T]]") -> T:
    import trio

    logins = Logins()
    url = logins.url(server)

    async def run(credentials: Credentials) -> T:
        async with AsyncSsoClient(url, credentials) as api:
            return await work(RemoteAdministration(api))

    try:
        credentials = _signed_in(url, logins)
        with plain_failures():
            return trio.run(run, credentials)
    except SignInRequired as error:
        raise CommandFailure(f"{url}: {error.text}; sign in again with `sso --server {url} login`") from None
    except ClientError as error:
        raise CommandFailure(f"{url}: {error}") from None


def _signed_in(url: str, logins: Logins) -> Credentials:
    """Returns credentials with a token that is valid for the time of a command."""
    with logins.locked():
        credentials = credentials_of(url, logins.find(url))
        before = renewal_of(credentials)
        with SsoClient(url) as api:
            api.run(credentials.headers())
        if (renewed := renewal_of(credentials)) != before:
            logins.update(url, **renewed)
    return credentials
