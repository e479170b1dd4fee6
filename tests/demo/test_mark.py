"""The demo is recognised, which shows all mails to everybody who can connect."""

from pathlib import Path

from sso.config import load
from sso.demo.mark import MARK, MARK_TEXT, is_demo


def test_demo_that_others_can_reach_is_none(tmp_path: Path) -> None:
    settings = {"SSO_DATA_DIR": str(tmp_path), "SSO_BASE_URL": "http://localhost:8000"}
    assert not is_demo(load(None, settings))
    (tmp_path / MARK).write_text(MARK_TEXT)
    assert is_demo(load(None, settings))
    assert not is_demo(load(None, settings | {"SSO_BIND": "0.0.0.0:8000"}))
    assert not is_demo(load(None, settings | {"SSO_BIND": "127.0.0.1:8000", "SSO_TRUSTED_PROXIES": "10.0.0.0/8"}))
    assert not is_demo(load(None, settings | {"SSO_BASE_URL": "https://sso.example.com"}))
