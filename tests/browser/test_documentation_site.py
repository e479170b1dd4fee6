"""The documentation site: built by scripts/docs, shown by the service at /docs/ under its strict policy.

A build takes longer than any other test, so a usual run looks at the pages only if they were built after the last
change, and ``scripts/check`` looks at those that it builds.
"""

import html
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from sso.console.sections import SECTIONS
from sso.documentation.site import BUILT_SITE
from tests.browser.conftest import DESKTOP, SharedWindows, Window, assert_accessible, set_width
from tests.kit.documentation_questions import QUESTIONS
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

ROOT = Path(__file__).parents[2]
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "

pytestmark = pytest.mark.browser


def newest(*folders: Path) -> float:
    """The time of the newest file, without those that a build or a test leaves."""
    files = (
        path for folder in folders for path in folder.rglob("*.*") if not {"_build", "__pycache__"} & {*path.parts}
    )
    return max(path.stat().st_mtime for path in files if path.name != ".build.lock")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as scripts/docs has built it, after the last change of a page."""
    folder = tmp_path_factory.mktemp("documentation") / "site"
    if BUILT_SITE.is_dir() and newest(ROOT / "docs", ROOT / "scripts" / "documentation") < newest(BUILT_SITE):
        shutil.copytree(BUILT_SITE, folder)
    elif IS_LONG_RUN:
        subprocess.run([sys.executable, "-m", "scripts.documentation", folder], cwd=ROOT, check=True)
    else:
        pytest.skip("the documentation is not built, or has changed since: run scripts/docs")
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small site with a file of some types."""
    folder = tmp_path_factory.mktemp("files") / "site"
    (folder / "_static").mkdir(parents=True)
    for name in ("index.html", "games.html", "games.md", "llms.txt", "_static/copybutton.js"):
        (folder / name).write_text(f"The content of {name}")
    return folder


@pytest.fixture(scope="module")
def server(site: Path, postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with showing(site, postgres_server, tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="module")
def file_server(files: Path, postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with showing(files, postgres_server, tmp_path_factory) as server:
        yield server


@contextmanager
def showing(site: Path, postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "1", "SSO_DOCS_DIR": str(site)}
    with running(tmp_path_factory.mktemp("site"), **QUICK | settings) as server:
        yield server


@pytest.fixture
def window(shared_windows: SharedWindows, width: int) -> Iterator[Window]:
    """A window with JavaScript, which the search and the choice of the theme need. Nothing is blocked or missing."""
    with shared_windows.use(width, scripts=True) as window:
        yield window


def test_files_have_a_policy_a_type_and_an_etag_and_only_they_are_served(file_server: Server, files: Path) -> None:
    with httpx.Client(base_url=file_server.base_url, timeout=60) as client:
        assert client.get("/docs").headers["Location"] == "/docs/"
        start = client.get("/docs/")
        assert start.content == client.get("/docs/index.html").content == (files / "index.html").read_bytes()
        assert start.headers["Content-Security-Policy"].startswith(POLICY)
        assert start.headers["Cache-Control"] == "no-cache"
        assert client.get("/docs/", headers={"If-None-Match": start.headers["ETag"]}).status_code == 304
        head = client.head("/docs/")
        assert (head.status_code, head.content) == (200, b"")
        types = {"games.md": "text/markdown", "llms.txt": "text/plain", "_static/copybutton.js": "text/javascript"}
        for name, content_type in types.items():
            answer = client.get(f"/docs/{name}")
            assert answer.headers["Content-Type"].startswith(content_type), name
            assert "max-age" in answer.headers["Cache-Control"]
        for method in ("POST", "PUT", "DELETE"):
            assert client.request(method, "/docs/games.html").status_code == 405
    outside = [
        "../conf.py",
        "%2e%2e/site/index.html",
        "..%2findex.html",
        "/etc/passwd",
        "_static",
        "nothing",
        "a" * 9000,
    ]
    for path in outside:  # curl does not remove the dots
        command = [
            "curl",
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--path-as-is",
            f"{file_server.base_url}/docs/{path}",
        ]
        assert subprocess.check_output(command, text=True) in ("404", "414"), path


def test_site_that_was_replaced_is_shown_and_one_that_is_missing_is_explained(file_server: Server, files: Path) -> None:
    away = files.with_name("away")
    files.rename(away)
    try:
        missing = httpx.get(f"{file_server.base_url}/docs/games.html", timeout=60)
        assert (missing.status_code, "scripts/docs" in missing.text) == (404, True)
        files.mkdir()
        (files / "index.html").write_text("<h1>New</h1>")
        (files / "secret.html").symlink_to("/etc/passwd")
        (files / "notes.cfg").write_text("not of a known type")
        assert httpx.get(f"{file_server.base_url}/docs/", timeout=60).text == "<h1>New</h1>"
        for name in ("secret.html", "notes.cfg", "games.html"):
            assert httpx.get(f"{file_server.base_url}/docs/{name}", timeout=60).status_code == 404
    finally:
        subprocess.run(["rm", "-rf", files], check=True)
        away.rename(files)
    assert httpx.get(f"{file_server.base_url}/docs/games.html", timeout=60).status_code == 200


def test_help_of_each_section_of_the_console_exists(site: Path) -> None:
    for section in SECTIONS:
        name, _, anchor = section.help.partition("#")
        text = (site / name).read_text()
        assert not anchor or f'id="{anchor}"' in text, section.key


def test_names_in_tables_break_between_their_words(site: Path) -> None:
    assert ">SSO_<wbr>BASE_<wbr>URL<" in (site / "settings.html").read_text()
    assert "/<wbr>users/<wbr>{user_id}/<wbr>bans<" in (site / "endpoints.html").read_text()
    assert "<wbr>" not in (site / "quickstarts" / "flask.html").read_text()


def links_of(page: Path) -> set[Path]:
    found = re.findall(r'<a [^>]*href="([^"#:]+\.html)', page.read_text().partition("<article")[2])
    return {(page.parent / link).resolve() for link in found}


def test_answers_to_questions_of_new_users_are_at_most_three_clicks_away(site: Path) -> None:
    """By the links within the pages, without the navigation at the side, which leads to every page at once."""
    clicks = {site / "index.html": 0}
    for distance in range(3):
        for page in [page for page, known in clicks.items() if known == distance]:
            for target in links_of(page):
                clicks.setdefault(target, distance + 1)
    misses = []
    for question in QUESTIONS:
        page = site / f"{question.page}.html"
        text = html.unescape(re.sub(r"<[^>]+>", "", page.read_text().partition("<article")[2]))
        if page not in clicks or question.says not in text:
            misses.append(f"{question.text} {question.page}: {clicks.get(page, 'not found')}")
    assert len(QUESTIONS) >= 30
    assert misses == []


def test_search_finds_the_page_that_answers_a_question(page: Page, server: Server) -> None:
    """Among the first ten results, with the words that a new user would type."""
    page.goto(f"{server.base_url}/docs/search.html?q=nothing")
    page.wait_for_function("typeof Search !== 'undefined' && Search._index")
    # The page asks its own index, without the summaries, for which it would read every page that was found.
    script = """queries => queries.map(query => Search._performSearch(...Search._parseQuery(query))
        .reverse().map(result => result[0]).filter((name, place, all) => all.indexOf(name) === place).slice(0, 10))"""
    found = page.evaluate(script, [question.search for question in QUESTIONS])
    assert [
        (question.search, question.page)
        for question, pages in zip(QUESTIONS, found, strict=True)
        if question.page not in pages
    ] == []


def test_pages_fit_a_phone_are_accessible_and_need_no_other_host(page: Page, server: Server) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    for name in ("", "games.html", "operations.html", "quickstarts/index.html"):
        page.goto(f"{server.base_url}/docs/{name}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert_accessible(page, "html")
    assert {url.split("/")[2] for url in requests} == {server.base_url.removeprefix("http://")}


def test_search_theme_and_copy_buttons_work_under_the_policy(page: Page, server: Server) -> None:
    set_width(page, DESKTOP)
    page.goto(f"{server.base_url}/docs/quickstarts/flask.html")
    page.locator("button.copybtn").first.wait_for(state="attached")
    page.get_by_placeholder("Search").first.fill("rotate signing keys")
    page.keyboard.press("Enter")
    page.locator("ul.search").get_by_role("link", name="Rotate keys and secrets", exact=True).click()
    expect(page.get_by_role("heading", name="Rotate keys and secrets", level=1)).to_be_visible()
    page.locator(".theme-toggle:visible").click()
    assert page.evaluate("document.body.dataset.theme") in ("light", "dark")
    page.evaluate("localStorage.clear()")
