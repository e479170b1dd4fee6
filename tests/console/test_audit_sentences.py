"""One sentence for each entry of the audit trail."""

from typing import Any

import pytest

from sso.console.audit.sentence import as_text
from sso.console.audit.sentences import sentence_of, undo_sentence_of
from sso.console.record_names import RIGHTS, RecordNames

NAMES = RecordNames(
    {
        ("user", "1000"): ("Demo", "demo@example.com"),
        ("user", "1001"): ("Player", "player@example.com"),
        ("application", "11"): ("Harbor Chat", ""),
        ("project", "harbor"): ("Harbor", ""),
    },
    frozenset(RIGHTS),
)


def entry(operation: str, target: str, before: Any = None, after: Any = None, **values: Any) -> dict[str, Any]:
    actor = {"user_id": "1000", "operator": "", "client_id": None, "service_id": None}
    scope = {"project_id": None, "application_id": None}
    return {"operation": operation, "target": target, "before": before, "after": after, **actor, **scope, **values}


def record(*roles: str, **rules: Any) -> dict[str, Any]:
    return {"roles": [{"name": name} for name in roles], "private_data": rules}


def members(**roles: list[str]) -> dict[str, Any]:
    users = [{"user_id": key.removeprefix("u"), "roles": {"project": names}} for key, names in roles.items()]
    return {"users": users, "allow": [], "disallow": []}


KICK = {"kick": {"value": True}}
TOO_LARGE = {"truncated": True, "bytes": 70_000}


@pytest.mark.parametrize(
    ("changed", "sentence", "undone"),
    [
        (
            entry("permissions.save", "11/1001", record(), record("moderator")),
            "Demo gave Player the role moderator at Harbor Chat",
            "Undo: Player loses the role moderator at Harbor Chat",
        ),
        (
            entry("permissions.save", "11/1001", record("a", "b"), record("c", chat=KICK)),
            "Demo gave Player the role c, took the roles a and b from them and changed their rule chat.kick at Harbor "
            "Chat",
            "Undo: Player gets the roles a and b, loses the role c and gets the earlier rule chat.kick at Harbor Chat",
        ),
        (
            entry("permissions.save", "11/1002", record(), record(*"abcdefgh")),
            "Demo gave a deleted user (1002) the roles a, b, c and 5 more at Harbor Chat",
            "Undo: a deleted user (1002) loses the roles a, b, c and 5 more at Harbor Chat",
        ),
        (
            entry("permissions.save", "11/1001", TOO_LARGE, record("a")),
            "Demo changed the permissions of Player at Harbor Chat",
            None,
        ),
        (
            entry("membership.save", "harbor", members(u1000=["admin"]), members(u1000=["admin"], u1001=["guest"])),
            "Demo made Player a member of Harbor with the role guest",
            "Undo: Player leaves Harbor",
        ),
        (
            entry("membership.save", "harbor", members(u1001=["guest"]), members(u1001=["admin"])),
            "Demo gave Player the role admin and took the role guest from them in Harbor",
            "Undo: Player gets the role guest and loses the role admin in Harbor",
        ),
        (
            entry("membership.save", "harbor", members(), members(**{f"u{n}": ["guest"] for n in range(2000, 2005)})),
            "Demo changed members of Harbor: a deleted user (2000), a deleted user (2001), a deleted user (2002) and 2 "
            "more",
            None,
        ),
        (
            entry(
                "user.save",
                "1001",
                {"nick": "a", "tags": []},
                {"nick": "b", "tags": ["x"]},
                operator="root",
                user_id="",
            ),
            "root (command line) changed nickname and tags of Player",
            "Undo: root (command line) changed nickname and tags of Player",
        ),
        (entry("user.save", "1001", {"disabled": False}, {"disabled": True}), "Demo disabled Player", None),
        (
            entry("client.delete", "shop", {"name": "Harbor Shop"}, None, user_id=""),
            "The service deleted the client Harbor Shop",
            None,
        ),
        (
            entry("role.save", "11/moderator", None, {"meta": {}}, application_id=11),
            "Demo created the role moderator of Harbor Chat",
            None,
        ),
        (
            entry("project.save", "harbor", {"settings": {}}, {"settings": {"services": {"11": {}}}}),
            "Demo changed the roles that groups of Harbor get at Harbor Chat",
            None,
        ),
        (entry("thing.new", "x"), "Demo did thing.new to x", None),
    ],
)
def test_entry_is_told_in_one_sentence(changed: dict[str, Any], sentence: str, undone: str | None) -> None:
    assert as_text(sentence_of(changed), NAMES) == sentence
    if undone is not None:
        assert as_text(undo_sentence_of(changed), NAMES) == undone
