"""Runs a command on a server: signs in with the stored tokens, and turns refusals into failures of the command."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from sso.cli.context import CommandFailure, plain_failures
from sso.cli.remote.applications import RemoteApplications
from sso.cli.remote.clients import RemoteClients
from sso.cli.remote.groups import RemoteGroups
from sso.cli.remote.invitations import RemoteInvitations
from sso.cli.remote.keys import RemoteKeys
from sso.cli.remote.logins import Logins, credentials_of, renewal_of
from sso.cli.remote.permissions import RemoteAudit, RemotePermissions
from sso.cli.remote.projects import RemoteProjects
from sso.cli.remote.providers import RemoteProviders
from sso.cli.remote.roles import RemoteRoles
from sso.cli.remote.state import RemoteState
from sso.cli.remote.users import RemoteUsers
from sso.cli.remote.violations import RemoteViolations
from sso.cli.remote.webhooks import RemoteWebhooks
from sso.client import AsyncSsoClient, ClientError, RequestRefused, SignInRequired, SsoClient
from sso.client.credentials import Credentials
from sso.client.exchange import UNEXPECTED
from sso.core.errors import ApiError
from sso.core.printable import printable

if TYPE_CHECKING:
    from sso.cli.administration import ServiceAdministration

T = TypeVar("T")


class RemoteAdministration:
    def __init__(self, api: AsyncSsoClient) -> None:
        self.users = RemoteUsers(api)
        self.invitations = RemoteInvitations(api)
        self.violations = RemoteViolations(api)
        self.clients = RemoteClients(api)
        self.projects = RemoteProjects(api)
        self.applications = RemoteApplications(api)
        self.roles = RemoteRoles(api)
        self.groups = RemoteGroups(api, self.projects)
        self.providers = RemoteProviders(api)
        self.keys = RemoteKeys(api)
        self.webhooks = RemoteWebhooks(api)
        self.audit = RemoteAudit(api, self.users, self.projects)
        self.permissions = RemotePermissions(api, self.users)
        self.state = RemoteState(api)


def with_remote_administration(server: str, work: "Callable[[ServiceAdministration], Awaitable[T]]") -> T:
    return with_remote_api(server, lambda api: work(RemoteAdministration(api)))


def with_remote_api(server: str, work: Callable[[AsyncSsoClient], Awaitable[T]]) -> T:
    import trio

    logins = Logins()
    url = logins.url(server)

    async def run(credentials: Credentials) -> T:
        async with AsyncSsoClient(url, credentials) as api:
            return await work(api)

    try:
        credentials = _signed_in(url, logins)
        with plain_failures():
            return trio.run(run, credentials)
    except SignInRequired as error:
        text = printable(error.text)
        raise CommandFailure(f"{url}: {text}; sign in again with `sso --server {url} login`") from None
    except RequestRefused as error:
        raise _failure(url, error) from None
    except ClientError as error:
        raise CommandFailure(f"{url}: {printable(str(error))}") from None
    except UNEXPECTED as error:
        raise CommandFailure(f"{url}: the answer of the server is not as expected: {error!r}") from None


def _failure(url: str, error: RequestRefused) -> Exception:
    """Returns the error that the command has on the machine of the service, if it is about its arguments."""
    if error.status in (400, 409) or error.text == "removed":
        return ApiError(printable(error.text))
    return CommandFailure(f"{url}: {printable(str(error))}")


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
