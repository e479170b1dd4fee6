"""sso doctor"""
import click


@click.command()
def command() -> None:
    """x"""
