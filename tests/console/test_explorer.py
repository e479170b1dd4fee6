"""The permission explorer: the reasons of every rule, past moments, differences of two users and of two moments."""

import csv
import html
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.console_pages import PAYLOAD
from tests.kit.server import until
from tests.perm.endpoints.conftest import ApiUser, Studio

EXPLORER = "/console/explorer"


@dataclass(frozen=True)
class Case:
    """Two users at an application with two roles; the first user got the role moderator after ``before``."""

    ann: ApiUser
    bob: ApiUser
    application_id: str
    project_id: str
    before: str

    def query(self, **fields: str) -> dict[str, str]:
        return {"user": self.ann.login, "application_id": self.application_id, **fields}


@pytest.fixture(scope="module")
def viewer(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_view_users") as browser:
        yield browser


@pytest.fixture(scope="module")
def case(studio: Studio) -> Case:
    schema = {"chat": {"write": {"value": True}, "kick": {"value": False}, "mute": {"value": False}}}
    ann, bob = studio.user(tags=["tester"]), studio.user()
    project_id = studio.project(ann)
    app = studio.application(project_id, private_data=schema)
    studio.role(app, "tester", "test", condition={"tag": "tester"})
    meta = {"private_data": {"chat": {"kick": {"value": True}, "mute": {"value": True}}}}
    data = {"name": "moderator", "meta": meta}
    assert studio.root.call("roles", action="save", application_id=app, data=data).status == 200
    studio.save_data(ann, app, private_data={"own": {"value": True}})
    before = query(studio.server, "SELECT CAST(extract(epoch FROM now()) AS bigint) AS s")[0]["s"]
    until(lambda: query(studio.server, "SELECT extract(epoch FROM now()) AS s")[0]["s"] > before + 1.1, 60)
    assert (
        studio.root.call(
            "meta/data", action="save", application_id=app, data={"user_id": ann.user_id, "roles": ["moderator"]}
        ).status
        == 200
    )
    moment = datetime.fromtimestamp(before, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return Case(ann, bob, str(app), project_id, moment)


def test_every_rule_is_shown_with_its_reason(viewer: ConsoleBrowser, case: Case) -> None:
    text = viewer.open(EXPLORER, params=case.query())
    assert "the application's schema gives it to every user" in text
    assert "role moderator" in text
    assert "its condition holds" in text  # the role tester
    assert "the user's own data" in text
    for leaf in ("write", "kick", "mute", "own"):
        assert f"<code>{leaf}</code>" in text, leaf
    by_id = viewer.open(EXPLORER, params=case.query(user=case.ann.user_id))
    assert by_id.count('class="leaf"') == text.count('class="leaf"') > 3


def test_page_without_a_user_explains_itself(viewer: ConsoleBrowser) -> None:
    assert "Whose permissions?" in viewer.open(EXPLORER)


def test_comparison_without_the_other_user_asks_for_one(viewer: ConsoleBrowser, case: Case) -> None:
    assert "Compare with whom?" in viewer.open(EXPLORER, params=case.query(compare="user"))


def test_past_moment_is_shown(viewer: ConsoleBrowser, case: Case) -> None:
    text = viewer.open(EXPLORER, params=case.query(at=case.before))
    assert "<code>write</code>" in text
    assert "<code>kick</code>" not in text
    assert f"{case.before.replace('T', ' ')} UTC" in text


def test_two_users_are_compared_and_differences_are_texts(viewer: ConsoleBrowser, case: Case) -> None:
    asked = case.query(compare="user", other_user=case.bob.login)
    text = viewer.open(EXPLORER, params=asked)
    assert text.count(f'">Only {case.ann.login}</span>') >= 4  # kick, mute, test, own
    assert '">Same</span>' in text  # write
    text = viewer.open(EXPLORER, params=asked | {"differences": "1"})
    assert "<code>write</code>" not in text
    assert "<code>kick</code>" in text
    assert "Why not" in text


def test_two_moments_are_compared(viewer: ConsoleBrowser, case: Case) -> None:
    text = viewer.open(EXPLORER, params=case.query(compare="moment", other_at=case.before, differences="1"))
    assert text.count('">Only now</span>') >= 3  # kick, mute, and the role
    assert "<code>write</code>" not in text
    swapped = viewer.open(EXPLORER, params=case.query(at=case.before, compare="moment", differences="1"))
    assert "<code>kick</code>" in swapped
    same = viewer.open(EXPLORER, params=case.query(compare="moment", differences="1"))
    assert "No differences" in same


def test_rule_is_explained_on_both_sides(viewer: ConsoleBrowser, case: Case) -> None:
    text = viewer.open(EXPLORER, params=case.query(compare="user", other_user=case.bob.login, rule="chat.kick"))
    explanation = text.partition('id="explanation"')[2].partition("</section>")[0]
    assert "Allowed" in explanation
    assert "Not allowed" in explanation
    assert "role moderator" in explanation


def test_explanation_names_the_end_of_the_rule(viewer: ConsoleBrowser, case: Case, studio: Studio) -> None:
    studio.save_data(case.bob, int(case.application_id), roles=[{"name": "moderator", "expired": 2_524_608_000}])
    text = viewer.open(EXPLORER, params=case.query(user=case.bob.login, rule="chat.kick"))
    studio.save_data(case.bob, int(case.application_id), roles=[])
    assert "has this rule until 2050-01-01 00:00:00Z, because of:" in text


def test_user_is_found_by_the_whole_login_beside_many_that_contain_it(
    viewer: ConsoleBrowser, case: Case, studio: Studio
) -> None:
    studio.server.apply({"users": [{"login": f"{letter}.{case.ann.login}"} for letter in "abcdef"]})
    assert f"<bdi>{case.ann.login}</bdi>" in viewer.open(EXPLORER, params=case.query(user=case.ann.login.upper()))


def test_rules_of_a_project_are_selected(viewer: ConsoleBrowser, case: Case) -> None:
    asked = {"user": case.ann.user_id, "application_id": "1"}
    text = viewer.open(EXPLORER, params=asked)
    assert f'<option value="{case.project_id}">' in text
    text = viewer.open(EXPLORER, params={**asked, "project": case.project_id})
    rules = _rows(viewer, {**asked, "project": case.project_id})
    assert rules
    assert all(row["rule"].startswith(f"private_data.projectAccess.{case.project_id}.") for row in rules)
    assert "given in the project" in text


def test_export_has_the_rules_and_the_differences(viewer: ConsoleBrowser, case: Case) -> None:
    rows = {row["rule"]: row for row in _rows(viewer, case.query())}
    assert "role moderator" in rows["private_data.chat.kick"]["reasons"]
    compared = case.query(compare="user", other_user=case.bob.login, differences="1")
    rows = {row["rule"]: row for row in _rows(viewer, compared)}
    assert rows["private_data.chat.kick"]["difference"] == f"Only {case.ann.login}"
    assert rows["private_data.chat.kick"]["right"].endswith(": no")
    assert "private_data.chat.write" not in rows


def _rows(browser: ConsoleBrowser, asked: dict[str, str]) -> list[dict[str, str]]:
    answer = browser.get(f"{EXPLORER}/export.csv", params=asked)
    assert answer.headers["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"user": "nobody.at.all@example.com"}, 404, "No user has this e-mail address or id"),
        ({"user": "999999999999"}, 404, "User not found"),
        ({"user": PAYLOAD}, 404, "No user has"),
        ({"application_id": "999999"}, 404, "Application not found"),
        ({"application_id": "no such name"}, 404, "No application has this id or name"),
        ({"at": "yesterday"}, 422, "Expected a date and time in UTC"),
        ({"at": "9999-12-31T23:59"}, 422, "Must not be in the future"),
        ({"at": "1970-01-01T00:00"}, 422, "The history begins at"),
        ({"at": "0001-01-01T00:00"}, 422, "Must be at least"),
        ({"compare": "moment", "other_at": "2999-01-01T00:00"}, 422, "Must not be in the future"),
        ({"compare": "user", "other_user": "nobody.else@example.com"}, 404, "No user has"),
        ({"rule": "x" * 600}, 422, "Must be at most 512 characters"),
    ],
)
def test_bad_input_is_named(
    viewer: ConsoleBrowser, case: Case, fields: dict[str, str], status: int, words: str
) -> None:
    answer = viewer.get(EXPLORER, params=case.query(**fields))
    assert (answer.status_code, words in html.unescape(viewer.problem)) == (status, True), viewer.problem
    assert "<img src=x" not in answer.text
    answer = viewer.get(f"{EXPLORER}/export.csv", params=case.query(**fields))
    assert (answer.status_code, answer.headers["Location"].startswith(f"{EXPLORER}?")) == (303, True)


def test_viewer_of_applications_sees_rules_but_no_logins(studio: Studio, case: Case) -> None:
    """The right includes the permissions of users at applications, but not the users."""
    with console_browser(studio, "can_view_applications") as browser:
        answer = browser.get(EXPLORER, params=case.query())
        assert (answer.status_code, "Expected a user id" in browser.problem) == (422, True)
        answer = browser.get(EXPLORER, params=case.query(user=case.ann.user_id))
        assert (answer.status_code, "<code>kick</code>" in answer.text) == (200, True)
        assert case.ann.login not in answer.text


def test_link_of_the_user_page_leads_to_the_explorer(viewer: ConsoleBrowser, case: Case) -> None:
    assert f'href="{EXPLORER}?user={case.ann.user_id}"' in viewer.open(f"/console/users/{case.ann.user_id}")
    answer = viewer.get(f"/console/users/{case.ann.user_id}/permissions")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{EXPLORER}?user={case.ann.user_id}")


def test_reasons_lead_to_the_pages_on_which_they_can_be_changed(
    root_browser: ConsoleBrowser, viewer: ConsoleBrowser, case: Case, studio: Studio
) -> None:
    app, ann = f"/console/applications/{case.application_id}", case.ann.user_id
    page = root_browser.open(EXPLORER, params=case.query())
    for path, text in (
        (f"{app}/roles/moderator", "role moderator"),
        (f"{app}/users/{ann}", "assigned"),
        (f"{app}/roles/tester", "its condition holds"),
        (f"{app}/schema", "the application's schema gives it to every user"),
    ):
        assert f'<a href="{path}">{text}' in page, path
        root_browser.open(path)
    page = root_browser.open(EXPLORER, params={"user": case.ann.login})
    member = f"/console/projects/{case.project_id}/members/{ann}"
    assert f'<a href="{member}">given in the project {case.project_id}' in page
    root_browser.open(member)
    page = root_browser.open(EXPLORER, params={**case.query(user=case.bob.login), "rule": "chat.kick"})
    explanation = page.partition('id="explanation"')[2].partition("</section>")[0]
    assert f'href="{app}/users/{case.bob.user_id}"' in explanation
    assert (
        "<a href" not in viewer.open(EXPLORER, params=case.query()).partition('class="tree"')[2].partition("Roles")[0]
    )


def test_reason_by_a_group_leads_to_the_group(root_browser: ConsoleBrowser, studio: Studio) -> None:
    project_id, user = studio.project(), studio.user()
    app = studio.application(project_id, private_data={"chat": {"value": False}})
    studio.role(app, "guard", "chat")
    group_id = studio.group(project_id, user.user_id)
    grant = {"group_id": group_id, "role": "guard", "action": "grant"}
    data = {"id": project_id, "settings": {"services": {str(app): {"groups": [grant]}}}}
    assert studio.root.call("project", action="save", data=data).status == 200
    page = root_browser.open(EXPLORER, params={"user": user.login, "application_id": str(app)})
    assert f'<a href="/console/projects/{project_id}/groups/{group_id}">granted by the project' in page


def test_users_who_may_do_something_are_listed_with_reasons(viewer: ConsoleBrowser, case: Case) -> None:
    assert "/console/explorer/who" in viewer.open(EXPLORER)
    who = f"{EXPLORER}/who"
    assert "Which rule?" in viewer.open(who)
    asked = {"rule": "chat.kick", "application_id": case.application_id}
    text = viewer.open(who, params=asked)
    assert f"/console/users/{case.ann.user_id}" in text
    assert "role moderator" in text
    assert case.bob.user_id not in text.partition("<table")[2]
    assert "Nobody" in viewer.open(who, params=asked | {"at": case.before})
    everybody = viewer.open(who, params=asked | {"rule": "chat.write"})
    assert "the application's schema gives it to every user" in everybody
    with_project = viewer.open(who, params=asked | {"project_id": case.project_id})
    assert f"/console/users/{case.ann.user_id}" in with_project
    assert "Nobody" in viewer.open(who, params=asked | {"project_id": "another"})
    rows = list(csv.DictReader(io.StringIO(viewer.get(f"{who}.csv", params=asked).text)))
    assert [row["user_id"] for row in rows] == [case.ann.user_id]
    assert "role moderator" in rows[0]["reasons"]
    for wrong, field in (({"at": "yesterday"}, "at"), ({"application_id": "none"}, "application_id")):
        page = viewer.get(who, params=asked | wrong).text
        assert f'id="{field}-wrong"' in page, page
