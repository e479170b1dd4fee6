"""Checks of an installation for ``sso doctor`` and for the console."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    name: str
    good: bool
    detail: str
    advice: str = ""
    warning: bool = False  # a failed check is reported, but does not count as a failure
