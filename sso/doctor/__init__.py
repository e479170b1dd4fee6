"""Checks of an installation for ``sso doctor`` and for the console."""
