"""The mark by which the data directory of the demo is recognised. ``scripts/run`` puts it there."""

from pathlib import Path

from sso.config import Settings

MARK = "demo"
MARK_TEXT = "scripts/run created this data directory. It has an administrator with a public password.\n"


def has_mark(data_dir: Path) -> bool:
    mark = data_dir / MARK
    return mark.is_file() and mark.read_bytes() == MARK_TEXT.encode()


def is_demo(settings: Settings) -> bool:
    """Returns whether all data are the demo's own, and only this machine can reach it."""
    others = (settings.database_url, settings.secret_key, settings.smtp_url)
    return settings.is_private and not any(others) and has_mark(settings.data_dir)
