"""One search for everything in the console: what an administrator may see, and nothing else."""

import re

from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import new_user
from tests.perm.endpoints.conftest import Studio


def hits(browser: ConsoleBrowser, text: str) -> dict[str, str]:
    """The paths of what is found, with their texts."""
    page = browser.open("/console/search", params={"q": text}).partition('id="hits"')[2].partition("</main>")[0]
    return dict(re.findall(r'<a href="([^"]+)"><bdi>([^<]*)', page))


def test_records_and_pages_are_found_by_a_part_of_their_name(root_browser: ConsoleBrowser, studio: Studio) -> None:
    login = new_user(studio.server, login="zora@quillfeather.example", nick="Zora")
    client = {"client_id": "site-of-quillfeather", "name": "Quillfeather shop", "redirect_hosts": ["q.example"]}
    studio.server.apply({"clients": [client], "projects": [{"id": "quillfeather", "title": "Quillfeather"}]})
    found = hits(root_browser, "uillFEATHER")
    assert {"/console/clients/site-of-quillfeather", "/console/projects/quillfeather"} <= found.keys()
    users = [path for path, name in found.items() if name == login]
    assert len(found) == 3
    assert login in root_browser.open(users[0])
    assert "/console/webhooks" in hits(root_browser, "webho")
    assert hits(root_browser, "nothing has this name") == {}
    number = re.findall(r"/console/audit/(\d+)", root_browser.open("/console/audit"))[0]
    assert f"/console/audit/{number}" in hits(root_browser, number)
    with console_browser(studio, "can_view_users") as clerk:
        assert list(hits(clerk, "quillfeather")) == users
        assert hits(clerk, "webho") == {}
        assert f"/console/audit/{number}" not in hits(clerk, number)  # a user may have the number
        assert list(hits(clerk, "user"))[:1] == ["/console/users"]
        assert not any("new" in path for path in hits(clerk, "add "))


def test_search_is_bounded_and_takes_any_text(root_browser: ConsoleBrowser) -> None:
    for text in ("%", "_", "\\", "'", "x" * 5000, "<script>", "9" * 40, "é"):
        assert root_browser.get("/console/search", params={"q": text}).status_code == 200, text
    assert root_browser.get("/console/search", params={"q": "a\0b"}).status_code == 400
