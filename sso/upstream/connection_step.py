"""One step of the test of a connection, and the step that all kinds with published keys have."""

from msgspec import Struct

from sso.upstream.discovery import json_of, parse_keys
from sso.upstream.errors import UpstreamError
from sso.upstream.http_client import ProviderClient


class ConnectionStep(Struct, frozen=True):
    """What was tested, and what was found. ``field``: the field of the provider that is wrong, if one is."""

    title: str
    works: bool
    found: str
    field: str = ""


async def keys_step(client: ProviderClient, url: str, field: str = "") -> ConnectionStep:
    try:
        keys = parse_keys(json_of(await client.get(url)))
    except UpstreamError as error:
        return ConnectionStep("Keys", False, error.reason, field)
    if not keys:
        return ConnectionStep("Keys", False, "no key can be used to verify ID tokens", field)
    return ConnectionStep("Keys", True, f"{len(keys)} {'key' if len(keys) == 1 else 'keys'} to verify ID tokens")
