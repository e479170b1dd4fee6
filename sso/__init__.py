"""Single sign-on and permissions server."""

__version__ = "0.1.0"
