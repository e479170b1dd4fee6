"""Names of rules as lists show them."""

import pytest

from sso.perm.engine.explanation.rule_name import ProjectRule, RootRule, parse_rule_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chat.mute", RootRule(("private_data.chat.mute", "public_data.chat.mute"))),
        (" chat.mute|eu,us:60", RootRule(("private_data.chat.mute", "public_data.chat.mute"))),
        ("public_data.chat.mute:0", RootRule(("public_data.chat.mute",))),
        ("p/project.can", ProjectRule("p", "project", "", "project.can")),
        ("p/applications/10/app.can|x", ProjectRule("p", "applications", "10", "app.can")),
        ("p/unknown/10/app.can", ProjectRule("p", "project", "", "unknown/10/app.can")),
        ("private_data.projectAccess.p.private_data.project.can", ProjectRule("p", "project", "", "project.can")),
        (
            "private_data.projectAccess.p.groups.a1.private_data.group.can",
            ProjectRule("p", "groups", "a1", "group.can"),
        ),
    ],
)
def test_name_in_list_or_list_short_form_is_parsed(name: str, expected: RootRule | ProjectRule) -> None:
    assert parse_rule_name(name) == expected
