"""Rules of FastQuart match and build URLs like those of Quart."""

import pytest
from quart import Quart
from quart_trio import QuartTrio
from werkzeug.routing import BuildError

from sso.web.fast_quart.app import FastQuart


@pytest.mark.parametrize("kind", [QuartTrio, FastQuart])
def test_rules_match_and_build_urls(kind: type[Quart]) -> None:
    app = kind("test")
    app.add_url_rule("/users/<int:user_id>/<name>", "user", lambda: "", defaults={"view": "short"})
    urls = app.url_map.bind("localhost")
    assert urls.match("/users/7/ann%20b") == ("user", {"user_id": 7, "name": "ann%20b", "view": "short"})
    assert urls.build("user", {"user_id": 7, "name": "ann b", "view": "short"}) == "/users/7/ann%20b"
    assert urls.build("user", {"user_id": 7, "name": "b", "more": "1"}) == "/users/7/b?more=1"
    with pytest.raises(BuildError):
        urls.build("user", {"name": "b"})
