"""Settings that several nodes of one database must share: the service does not start without them."""

from pathlib import Path

import pytest

from sso.config import ConfigError, load
from sso.core.encryption import MasterKey
from sso.keys.master_key import open_keyring
from sso.keys.shared_settings import require_shared_settings
from tests.kit.server import QUICK, run_sso, running

EXTERNAL = {"SSO_DATABASE_URL": "postgresql://127.0.0.1:1/none"}
KEY = {"SSO_SECRET_KEY": MasterKey.generate().text()}
BASE_URL = {"SSO_BASE_URL": "https://sso.example.com"}


def refusal(settings: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as refused:
        require_shared_settings(load(None, settings))
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("given", "missing", "present"),
    [
        ({}, ["SSO_SECRET_KEY", "SSO_BASE_URL"], []),
        ({"SSO_BASE_URL": "", "SSO_SECRET_KEY": ""}, ["SSO_SECRET_KEY", "SSO_BASE_URL"], []),
        (KEY, ["SSO_BASE_URL"], ["SSO_SECRET_KEY"]),
        (BASE_URL, ["SSO_SECRET_KEY"], ["SSO_BASE_URL"]),
        (BASE_URL | {"SSO_SINGLE_NODE": "0"}, ["SSO_SECRET_KEY"], ["SSO_BASE_URL"]),
    ],
)
def test_external_database_without_shared_settings_is_refused(
    given: dict[str, str], missing: list[str], present: list[str]
) -> None:
    text = refusal(EXTERNAL | given)
    assert all(name in text for name in [*missing, "SSO_SINGLE_NODE=1"])
    assert not any(name in text for name in present)


@pytest.mark.parametrize("settings", [{}, EXTERNAL | KEY | BASE_URL, EXTERNAL | {"SSO_SINGLE_NODE": "1"}])
def test_other_settings_are_accepted(settings: dict[str, str]) -> None:
    require_shared_settings(load(None, settings))


def test_refusal_names_the_key_file_of_an_earlier_start(tmp_path: Path) -> None:
    alone = EXTERNAL | BASE_URL | {"SSO_DATA_DIR": str(tmp_path)}
    open_keyring(load(None, alone | {"SSO_SINGLE_NODE": "1"}))
    assert str(tmp_path / "secret.key") in refusal(alone)


def test_master_key_is_not_created_for_a_shared_database(tmp_path: Path) -> None:
    settings = EXTERNAL | BASE_URL | {"SSO_DATA_DIR": str(tmp_path / "data")}
    with pytest.raises(ConfigError, match="SSO_SECRET_KEY"):
        open_keyring(load(None, settings))
    assert not (tmp_path / "data").exists()
    assert open_keyring(load(None, EXTERNAL | KEY)).keys[0].text() == KEY["SSO_SECRET_KEY"]


@pytest.mark.parametrize("command", [["serve"], ["key", "rotate"]])
def test_commands_end_with_one_line(command: list[str], dsn: str, tmp_path: Path) -> None:
    settings = {"SSO_DATABASE_URL": dsn, "SSO_DATA_DIR": str(tmp_path / "data"), "SSO_SINGLE_NODE": ""}
    done = run_sso(tmp_path, *command, **settings)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("sso: SSO_DATABASE_URL: several nodes can share this database, so set SSO_SECRET_KEY")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_service_starts_with_shared_settings(dsn: str, tmp_path: Path) -> None:
    settings = QUICK | KEY | BASE_URL | {"SSO_SINGLE_NODE": "", "SSO_DATABASE_URL": dsn}
    with running(tmp_path, **settings) as server:
        assert server.base_url == "https://sso.example.com"
        assert not (tmp_path / "data" / "secret.key").exists()
