"""`sso config example` prints a file that has every setting and loads; deploy/sso.example.toml is its output."""

import re
import tomllib
from pathlib import Path

import pytest

import sso as sso_package
from sso.cli.config import SECTIONS
from sso.config import SETTINGS, load
from sso.core.setting import setting_info
from tests.cli.conftest import Sso
from tests.kit.smtp import make_certificate

LOGO = Path(sso_package.__file__).parent / "web" / "static" / "logo.svg"
SAMPLE = Path(__file__).parents[2] / "deploy" / "sso.example.toml"


@pytest.fixture
def example(sso: Sso) -> str:
    result = sso("config", "example")
    assert (result.code, result.err) == (0, "")
    return result.out


def test_sample_in_deploy_is_the_output_of_the_command(example: str) -> None:
    assert example == SAMPLE.read_text(), "run: sso config example > deploy/sso.example.toml"


def test_example_has_every_setting_with_its_description(example: str) -> None:
    assert re.findall(r"^#(SSO_\w+) = ", example, flags=re.M) == list(SETTINGS)
    words = re.sub(r"\n#? ?", " ", example)
    for name, item in SETTINGS.items():
        description = setting_info(item).description
        assert description.endswith("."), name
        assert description in words, name
    assert SETTINGS.keys() >= SECTIONS.keys()


def test_example_as_it_is_changes_nothing(example: str, tmp_path: Path) -> None:
    path = tmp_path / "sso.toml"
    path.write_text(example)
    assert load(path, {}) == load(None, {})


def test_example_loads_with_all_settings_uncommented(example: str, tmp_path: Path) -> None:
    text = re.sub(r"^#(?=SSO_)", "", example, flags=re.M)
    assert tomllib.loads(text).keys() == SETTINGS.keys()
    authority = str(make_certificate(tmp_path).ca_file)  # it must exist
    text = re.sub(r"^(SSO_\w+_CA_FILE = ).*", rf'\1"{authority}"', text, flags=re.M)
    text = re.sub(r"^(SSO_BRAND_LOGO = ).*", rf'\1"{LOGO}"', text, flags=re.M)
    text = re.sub(r"^(SSO_TEST_PLAYER_PASSWORD = ).*", r'\1"known to developers"', text, flags=re.M)  # it is public
    path = tmp_path / "sso.toml"
    for excluded in ("SSO_WAL_ARCHIVE", "SSO_DATABASE_URL"):  # they exclude each other
        path.write_text(re.sub(f"^{excluded} = .*", "", text, flags=re.M))
        assert load(path, {}).base_url == "https://sso.example.com"


def test_commented_values_are_the_defaults(example: str, tmp_path: Path) -> None:
    defaults = load(None, {})
    path = tmp_path / "sso.toml"
    for name, item in SETTINGS.items():
        if setting_info(item).example is None:
            (line,) = re.findall(f"^#({name} = .*)", example, flags=re.M)
            path.write_text(line)
            assert load(path, {}) == defaults, name
