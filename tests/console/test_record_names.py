"""People and records are shown by name, as far as the administrator may see them."""

from sso.console.record_names import RecordNames
from sso.core.path_ids import path_id
from sso.oauth.errors import UnregisteredRedirectUri
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.perm.endpoints.conftest import Studio


def test_actor_is_shown_by_name_with_the_id_to_administrators_who_may_see_users(
    studio: Studio, root_browser: ConsoleBrowser
) -> None:
    actor, target = studio.user(), studio.user()
    studio.give_rules(actor, "can_manage_users")
    query(studio.server, "UPDATE users SET nick = '<b>Ann</b>' WHERE user_id = $1", actor.user_id)
    with ConsoleBrowser(studio.server, actor) as manager:
        manager.open(f"/console/users/{target.user_id}")
        manager.act(f"/console/users/{target.user_id}", nick="Renamed")
    path = f"/console/audit?actor={actor.user_id}"
    page = root_browser.get(path).text
    assert f'title="{actor.login}, user {actor.user_id}"><bdi>&lt;b&gt;Ann&lt;/b&gt;</bdi>' in page
    assert f'data-copy-text="{actor.user_id}"' in page
    with console_browser(studio, "can_view_audit") as auditor:
        page = auditor.get(path).text
        assert (f"user {actor.user_id}</bdi>" in page, "Ann" in page, actor.login in page) == (True, False, False)


def test_record_that_is_not_found_is_deleted_and_one_without_a_name_is_its_id() -> None:
    names = RecordNames({("client", "shop"): ("shop", "")}, frozenset({"user", "client"}))
    assert names.of("user", 1001).text == "a deleted user (1001)"
    assert names.of("application", 11).text == "application 11"  # hidden
    assert (names.of("client", "shop").text, names.of("client", "shop").title) == ("shop", "")
    assert names.of("client", "shop").page == "/console/clients/shop"


def test_page_of_a_client_whose_id_is_an_address_has_no_slash_in_its_path() -> None:
    agent = "https://agent.example.com/client.json"
    names = RecordNames({("client", agent): ("Agent", "")}, frozenset({"client"}))
    assert names.of("client", agent).page == f"/console/clients/{path_id(agent)}"
    error = UnregisteredRedirectUri("the host is another one", "https://other.example/cb", agent)
    assert error.developer_path.startswith(f"/console/clients/{path_id(agent)}?add_redirect_uri=")
