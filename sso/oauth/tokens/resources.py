"""Resource indicators (RFC 8707): a client names the resource servers that its access tokens are meant for.

The identifier of a resource server is its client id, or a URI at one of its hosts.
"""

from collections.abc import Sequence

from sso.db.database import Database
from sso.oauth.clients.redirect_uris import match_post_logout_redirect_uri
from sso.oauth.clients.store import list_resource_servers
from sso.oauth.errors import InvalidTarget
from sso.oauth.model import Client

MAX_RESOURCES = 5
MAX_RESOURCE = 512  # characters; a JWT access token contains all of them


def check_resources(resources: Sequence[str]) -> tuple[str, ...]:
    """Returns the resources without repetitions. Raises InvalidTarget if they are too many or malformed."""
    unique = tuple(dict.fromkeys(resources))
    if len(unique) > MAX_RESOURCES:
        raise InvalidTarget(f"resource: expected at most {MAX_RESOURCES}")
    for resource in unique:
        is_plain = resource.isascii() and resource.isprintable() and not set(resource) & set(' "\\#')
        if not resource or len(resource) > MAX_RESOURCE or not is_plain:
            raise InvalidTarget(
                f"resource: expected the id of a resource server or a URI, of at most {MAX_RESOURCE} characters"
            )
    return unique


def has_identifier(server: Client, resource: str, *, allow_http: bool) -> bool:
    """Returns whether the resource is this resource server."""
    if resource == server.client_id:
        return True
    hosts, uris = server.redirect_hosts, server.redirect_uris
    return match_post_logout_redirect_uri(resource, hosts, uris, allow_http=allow_http) is not None


class ResourceServers:
    def __init__(self, database: Database, *, allow_http: bool) -> None:
        self._database = database
        self._allow_http = allow_http

    async def require(self, resources: Sequence[str]) -> tuple[str, ...]:
        """Returns the resources. Raises InvalidTarget unless each of them is a registered resource server."""
        checked = check_resources(resources)
        servers = await list_resource_servers(self._database)
        for resource in checked:
            if not any(has_identifier(server, resource, allow_http=self._allow_http) for server in servers):
                raise InvalidTarget("resource: expected registered resource servers")
        return checked
