"""SIGHUP after a change of settings that only a start can apply."""

import signal
from pathlib import Path

import pytest

from sso.config import load
from sso.serve.start_settings import changed_start_settings, keep_start_settings
from tests.kit.server import QUICK, Server, until

ALL = {
    "SSO_BIND": "127.0.0.1:8001",
    "SSO_BASE_URL": "https://sso.example.com",
    "SSO_WS_URL": "wss://sockets.example.com",
    "SSO_METRICS_BIND": "127.0.0.1:9090",
    "SSO_DATA_DIR": "elsewhere",
    "SSO_WAL_ARCHIVE": "/backups/wal",
    "SSO_NODE_NAME": "web1",
    "SSO_USER": "nobody",
}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return set(changed_start_settings(load(environ=before), load(environ=after)))


@pytest.mark.parametrize(
    ("after", "names"),
    [
        ({}, set()),
        (ALL, set(ALL)),
        ({"SSO_VENDOR": "forge", "SSO_WORKERS": "2"}, set()),
        ({"SSO_BIND": "127.0.0.1:8001"}, {"SSO_BIND"}),  # the base URL follows from it
        ({"SSO_BASE_URL": "https://sso.example.com"}, {"SSO_BASE_URL"}),  # the WebSocket URL follows from it
        ({"SSO_DATABASE_URL": "postgresql://sso:hunter-two@db/sso"}, {"SSO_DATABASE_URL"}),
    ],
)
def test_changed_settings_are_named_without_those_that_follow(after: dict[str, str], names: set[str]) -> None:
    assert changed({}, after) == changed(after, {}) == names


def test_settings_of_a_start_are_kept() -> None:
    running = load(environ={})
    kept = keep_start_settings(load(environ=ALL | {"SSO_VENDOR": "forge"}), running)
    assert changed_start_settings(running, kept) == []
    assert (kept.has_base_url, kept.vendor) == (False, "forge")


def test_sighup_names_the_settings_that_need_a_restart(tmp_path: Path, dsn: str) -> None:
    config = tmp_path / "sso.toml"
    config.write_text('SSO_BIND = "127.0.0.1:0"\n')
    server = Server(tmp_path, QUICK | {"SSO_DATABASE_URL": dsn, "SSO_CONFIG": str(config), "SSO_LOG_FORMAT": "json"})
    del server.settings["SSO_BIND"]  # the file has it: variables of a process do not change
    server.start()
    try:
        reload(server, 1)
        assert server.log_events("reload.restart_needed") == []
        config.write_text('SSO_BIND = "127.0.0.2:1"\nSSO_METRICS_BIND = "127.0.0.1:0"\nSSO_VENDOR = "forge"\n')
        reload(server, 2)
        [warning] = server.log_events("reload.restart_needed")
        assert (warning["level"], warning["settings"]) == ("warning", ["SSO_BIND", "SSO_METRICS_BIND"])
        with server.client() as client:
            assert client.get("/readyz").status_code == 200
    finally:
        assert server.stop() == 0


def reload(server: Server, count: int) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGHUP)
    assert until(lambda: len(server.log_events("reload.finished")) == count), server.log()[-3000:]
