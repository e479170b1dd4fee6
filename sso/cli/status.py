"""sso status"""

from typing import Any

import click

from sso.cli.context import running_database, settings_of
from sso.cli.output import Format, list_options, print_list
from sso.cli.records import with_records
from sso.cli.server_choice import chosen_server
from sso.nodes.node_list import Node, notes_on, read_nodes


@click.command()
@list_options
@click.pass_context
def command(ctx: click.Context, form: Format | None) -> None:
    """List the nodes that use the database, with their load and anything unusual about them.

    A node is one `sso serve`. Its workers send a heartbeat every 5 seconds. A node without one for 15 seconds is
    silent; it is listed for a day. A node that was stopped is not listed. CLOCK is the number of seconds by which the
    clock of its host is ahead of the database's.

    \b
    Example:
      sso status
      sso status --json
    """
    if chosen_server(ctx):
        print_list(form, with_records(ctx, lambda records: records.state.nodes()))
        return
    with running_database(settings_of(ctx)) as dsn:
        nodes = read_nodes(dsn)
    print_list(form, [_record(node, nodes) for node in nodes])


def _record(node: Node, nodes: list[Node]) -> dict[str, Any]:
    return {
        "node": node.name,
        "state": "silent" if node.is_silent else "running",
        "version": ", ".join(node.versions),
        "schema": ", ".join(node.schema_versions),
        "workers": node.workers,
        "held_polls": node.held_polls,
        "sockets": node.sockets,
        "clock": round(node.clock_offset_s, 1) + 0.0,  # not -0.0
        "seen_s_ago": round(node.age_s),
        "up_s": round(node.uptime_s),
        "notes": "; ".join(notes_on(node, nodes)),
    }
