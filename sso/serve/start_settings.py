"""The settings that only a start can apply: at SIGHUP, the service keeps their values."""

import dataclasses

from sso.config import PREFIX, Settings

NAMES = (
    "bind", "base_url", "ws_url", "metrics_bind", "data_dir", "database_url", "wal_archive", "node_name", "user",
)  # fmt: skip


def keep_start_settings(current: Settings, running: Settings) -> Settings:
    """Returns the current settings with those values of the running service that only a start can change."""
    return dataclasses.replace(current, **{name: getattr(running, name) for name in (*NAMES, "has_base_url")})


def changed_start_settings(before: Settings, current: Settings) -> list[str]:
    """Returns the names of the changed settings that only a start can apply, without addresses that follow from others.

    Their values may be secret.
    """
    derived = _derived_addresses(before) & _derived_addresses(current)
    changed = [name for name in NAMES if getattr(before, name) != getattr(current, name)]
    return [PREFIX + name.upper() for name in changed if name not in derived]


def _derived_addresses(settings: Settings) -> set[str]:
    derived = set() if settings.has_base_url else {"base_url"}
    if settings.ws_url == "ws" + settings.base_url.removeprefix("http"):
        derived.add("ws_url")
    return derived
