"""The nodes of a server, as `sso status` lists them."""

from sso.cli.administration import Fields, Records
from sso.cli.remote.administration import with_remote_api
from sso.client import AsyncSsoClient, system


def read_remote_nodes(server: str) -> Records:
    return with_remote_api(server, _read)


async def _read(api: AsyncSsoClient) -> Records:
    return [_record(node) for node in (await api.send(system()))["nodes"]]


def _record(node: Fields) -> Fields:
    return {
        "node": node["name"],
        "state": "silent" if node["is_silent"] else "running",
        "version": ", ".join(node["versions"]),
        "schema": ", ".join(node["schema_versions"]),
        "workers": node["workers"],
        "held_polls": node["held_polls"],
        "sockets": node["sockets"],
        "clock": round(node["clock_offset_s"], 1) + 0.0,  # not -0.0
        "seen_s_ago": node["seen_s_ago"],
        "up_s": node["up_s"],
        "notes": "; ".join(node["notes"]),
    }
