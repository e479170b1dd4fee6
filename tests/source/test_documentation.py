"""The documentation names the settings that exist, with the defaults that they have."""

import re
from pathlib import Path

from sso.config import SETTINGS
from sso.environment import NO_SETTINGS

ROOT = Path(__file__).parents[2]
DOCS = {str(path.relative_to(ROOT / "docs")): path.read_text() for path in sorted((ROOT / "docs").glob("**/*.rst"))}
# Settings that are documented as a family: ``SSO_POLL_*``.
NAME = re.compile(r"\bSSO_[A-Z0-9_]*[A-Z0-9](?!\*)\b(?!_\*)")


def test_every_setting_is_documented() -> None:
    text = "".join(DOCS.values())
    assert [name for name in SETTINGS if f"``{name}``" not in text and f"``{name}=" not in text] == []


def test_every_documented_setting_exists() -> None:
    unknown = (
        {name for text in DOCS.values() for name in NAME.findall(text)} - SETTINGS.keys() - {*NO_SETTINGS, "SSO_PEERS"}
    )  # of the benchmarks
    assert {name for name in unknown if not any(known.startswith(f"{name}_") for known in SETTINGS)} == set()


def test_documented_rate_limits_equal_the_defaults() -> None:
    rows = re.findall(
        r"   \* - (.+)\n     - (.+)\n     - (.+)\n",
        DOCS["limits.rst"].partition("Throttles")[2].partition("Limits of routes")[0],
    )
    settings = [(re.findall(r"``(SSO_\w+)``", source), default) for _, default, source in rows]
    checked = [(name, default) for names, default in settings for name in names]
    assert len(checked) >= 7
    for name, default in checked:
        numbers = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", default)}
        assert SETTINGS[name].default in numbers, name


def test_every_source_file_that_the_documentation_names_exists() -> None:
    names = {
        name for text in DOCS.values() for name in re.findall(r"``((?:sso|scripts|tests|examples)/[\w./]*\w)``", text)
    }
    assert len(names) >= 10
    assert [name for name in sorted(names) if not (ROOT / name).exists()] == []
