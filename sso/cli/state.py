"""sso state"""

import click

from sso.cli.command_groups import Subcommands
from sso.cli.echo import echo_json


@click.group(cls=Subcommands)
def command() -> None:
    """Print the JSON schema of documents of desired state, which `sso apply` applies.

    \b
    Example:
      sso state schema > state.schema.json
    """


@command.command("schema")
def schema() -> None:
    """Print the JSON schema of documents.

    Editors complete and check a document that names the schema in "$schema".

    \b
    Example:
      sso state schema > state.schema.json
    """
    from sso.state.json_schema import document_schema

    echo_json(document_schema(), indent=True)
