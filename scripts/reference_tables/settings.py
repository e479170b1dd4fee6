"""The table of settings: sso/settings.py, as reStructuredText."""

import re

from sso.config import SETTINGS
from sso.core.setting import default_in_words, setting_info

Row = tuple[str, ...]


def setting_rows() -> list[Row]:
    rows: list[Row] = []
    for name, item in SETTINGS.items():
        info = setting_info(item)
        has_example = info.example is not None and "`" not in str(info.example)
        example = f" Example: ``{info.example}``." if has_example else ""
        default = default_in_words(item)
        default = as_literals(default) if info.default_text or default == "none" else f"``{default}``"
        rows.append((f"``{name}``", default, f"{as_literals(info.description)}{example}{_link(info.see)}"))
    return rows


def as_literals(text: str) -> str:
    """Marks up code, and names of settings, as literals."""
    text = re.sub(r"`([^`]+)`", r"``\1``", text)
    return re.sub(r"(?<![`\w])(SSO_[A-Z0-9_]+)(?![`\w])", r"``\1``", text)


def _link(see: str) -> str:
    return f" See :doc:`{see}`." if see else ""
