"""The section "Signing keys"."""

from collections.abc import Iterator

import pytest

from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.perm.endpoints.conftest import Studio

SECTION = "/console/signing-keys"
NEWEST = "SELECT kid FROM signing_keys WHERE side AND algorithm = 'ES256' ORDER BY signs_from DESC LIMIT 1"


@pytest.fixture(scope="module")
def keeper(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_manage_keys") as browser:
        yield browser


def rotate(keeper: ConsoleBrowser) -> str:
    """Adds a side key, which signs little. Returns its id."""
    keeper.open(SECTION)
    assert "published" in keeper.act(f"{SECTION}/rotate", series="side ES256")
    kid: str = query(keeper.server, NEWEST)[0]["kid"]
    return kid


def test_key_is_rotated_and_the_replaced_one_is_retired(keeper: ConsoleBrowser) -> None:
    replaced = rotate(keeper)
    newest = rotate(keeper)
    assert newest != replaced
    text = keeper.open(SECTION)
    assert (f"{SECTION}/{replaced}/retire" in text, f"{SECTION}/{newest}/retire" in text) == (False, False)  # they wait
    query(keeper.server, "UPDATE signing_keys SET signs_from = now() - interval '1 minute' WHERE kid = $1", replaced)
    query(keeper.server, "UPDATE signing_keys SET signs_from = now() - interval '1 second' WHERE kid = $1", newest)
    keeper.open(SECTION)
    assert "retired" in keeper.delete(f"{SECTION}/{replaced}/retire")
    assert query(keeper.server, "SELECT retired FROM signing_keys WHERE kid = $1", replaced)[0]["retired"]


def test_page_says_why_a_key_is_not_changed(keeper: ConsoleBrowser) -> None:
    kid = rotate(keeper)
    answer = keeper.send(f"{SECTION}/{kid}/retire")
    assert (answer.status_code, "rotate first" in keeper.problem) == (409, True)
    answer = keeper.send(f"{SECTION}/{kid}/retire", version='"old"')
    assert (answer.status_code, "in the meantime" in keeper.problem) == (409, True)
    answer = keeper.send(f"{SECTION}/rotate", series="side RS256")
    assert (answer.status_code, "needs the algorithm" in keeper.problem) == (422, True)
    answer = keeper.send(f"{SECTION}/rotate", series="none")
    assert (answer.status_code, "must be" in keeper.problem) == (422, True)
    assert query(keeper.server, NEWEST)[0]["kid"] == kid


def test_administrator_who_views_keys_has_no_buttons(studio: Studio) -> None:
    with console_browser(studio, "can_view_keys") as viewer:
        text = viewer.open(SECTION)
        assert ("RS256" in text, "/retire" in text, "/rotate" in text) == (True, False, False)
