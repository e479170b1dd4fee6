"""The path to continue at after sign-in leads to this server only."""

import pytest

from sso.web.redirects import safe_next


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/account",
        "/a/b?c=d&e=%2F",
        "/?gsid=1",
        "/proxy/oauth/authorize?redirect_uri=https%3A%2F%2Fa.example%2F",
        "/a//b",
    ],
)
def test_local_path_is_kept(path: str) -> None:
    assert safe_next(path) == path


@pytest.mark.parametrize(
    "path",
    [
        None, 5, b"/account", ["/account"], "", "//", "//evil", "/\\", "/\\/evil", "\\evil", "/%2F", "/%2fevil", "/%5c",
        "/%5Cevil", "/\x00", "/\n", "/account\n", "/account\r\nA: b", "/ ", "/a b", "/<", '/"', "/'", "/é",
        "/\u2044evil", "/\uff0fevil", "https://a", "http:a", "javascript:1", "/" + "a" * 4096,
    ],
)  # fmt: skip
def test_anything_else_becomes_the_account_page(path: object) -> None:
    assert safe_next(path) == "/account"
