"""A game client with login: `sso play`.

It needs only the address of the service and imports none of its code, so that it can be copied into a game.
"""

from sso.cli.play.command import command

__all__ = ["command"]
