"""Rows of the tables that the program itself can list: commands, endpoints, rights, events."""

import re
from collections.abc import Iterator

import click

from scripts.reference_tables.route_limits import offline_services
from scripts.reference_tables.settings import as_literals
from sso.admin.rights import AdminRight, with_included
from sso.change_stream.events import ChangeType
from sso.cli import program
from sso.openapi.document import all_operations, document_path
from sso.openapi.operation_ids import service_operation_id
from sso.openapi.schemas import SchemaComponents
from sso.signals.event_types import EVENT_URIS

MAX_SENTENCE = 500
Row = tuple[str, ...]


def command_rows() -> list[Row]:
    return [
        (f"``{path}``", as_literals(command.get_short_help_str(MAX_SENTENCE)))
        for path, command in _commands(program, click.Context(program, info_name="sso"))
    ]


def _commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        arguments = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        yield " ".join([context.command_path, *arguments]), command
        return
    if command.invoke_without_command:
        yield context.command_path, command
    for name in command.list_commands(context):
        if (child := command.get_command(context, name)) and not child.hidden:
            yield from _commands(child, click.Context(child, parent=context, info_name=name))


def endpoint_rows() -> dict[str, list[Row]]:
    """The endpoints for programs, by the part of the service that they belong to."""
    rows: dict[str, list[Row]] = {}
    for operation in all_operations(offline_services().management.routes, SchemaComponents()):
        if not operation.is_page:
            path = document_path(operation.path)
            name = operation.operation_id or service_operation_id(operation.method, path)
            row = (f"``{operation.method} {path}``", f"``{name}``", as_literals(operation.summary))
            rows.setdefault(operation.tag, []).append(row)
    return rows


def right_rows() -> list[Row]:
    return [
        (
            f"``{right}``",
            ", ".join(f"``{included}``" for included in sorted(with_included({right}) - {right})),
        )
        for right in AdminRight
    ]


def event_rows() -> list[Row]:
    """Without the event of a permission, which has no ``type`` in the stream."""
    return [(f"``{change}``",) for change in ChangeType if change is not ChangeType.PERMISSIONS_CHANGED]


def signal_rows() -> list[Row]:
    return [(f"{_specification(uri)} ``{signal}``",) for signal, uri in EVENT_URIS.items()]


def _specification(uri: str) -> str:
    match = re.search(r"secevent/(\w+)/", uri)
    assert match, uri
    return match[1].upper()
