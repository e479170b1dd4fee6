"""What a change of permissions or of the members of a project did: who got and lost which roles and rules."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from sso.console.audit.differences import differences
from sso.console.audit.sentence import Entry, Piece, Sentence, codes, enumerated, fill
from sso.console.audit.undo import restorable
from sso.perm.engine.reserved_names import SECTIONS

_RULE_ENDS = (".value", ".params", ".expired", ".ttl")


class Words(NamedTuple):
    """How changes are told: of an author who makes them, or of the user who has them after an undo.

    Each has a second form for later parts of a sentence, which have named the user already.
    """

    given: tuple[str, str]
    taken: tuple[str, str]
    changed: tuple[str, str]
    rules: tuple[str, str]


ACTIVE = Words(
    ("gave {user} the {roles}", "gave them the {roles}"),
    ("took the {roles} from {user}", "took the {roles} from them"),
    ("changed the time limit of the {roles} of {user}", "changed the time limit of their {roles}"),
    ("changed the {rules} of {user}", "changed their {rules}"),
)
EFFECT = Words(
    ("{user} gets the {roles}", "gets the {roles}"),
    ("{user} loses the {roles}", "loses the {roles}"),
    ("{user} gets the earlier time limit of the {roles}", "gets the earlier time limit of the {roles}"),
    ("{user} gets the earlier {rules}", "gets the earlier {rules}"),
)
Part: TypeAlias = tuple[tuple[str, str], dict[str, Sentence]]


def permissions_saved(entry: Entry, words: Words = ACTIVE) -> Sentence:
    """The roles and rules that a user got and lost at an application."""
    application_id, _, user_id = entry["target"].partition("/")
    before, after = _object(entry["before"]), _object(entry["after"])
    parts: list[Part] = []
    if restorable(before, after):
        parts += _role_parts(_roles(before.get("roles")), _roles(after.get("roles")), words)
        sections = [differences(before.get(name) or {}, after.get(name) or {}) for name in SECTIONS]
        rules = [*dict.fromkeys(_rule(difference.field) for section in sections for difference in section)]
        parts += [(words.rules, {"rules": _counted("rule", rules)})] if rules else []
    user, application = Piece("", "user", user_id), Piece("", "application", application_id)
    sentence = _joined(parts, user) or fill("changed the permissions of {user}", {"user": user})
    return (*sentence, *fill(" at {application}", {"application": application}))


def membership_saved(entry: Entry, words: Words = ACTIVE) -> Sentence:
    """The member who was added, removed or has other roles; of several members only who they are."""
    project = Piece("", "project", entry["target"])
    old, new = _members(entry["before"]), _members(entry["after"])
    changed = [user_id for user_id in {**old, **new} if old.get(user_id) != new.get(user_id)]
    users = [Piece("", "user", user_id) for user_id in changed]
    if not changed:
        return fill("changed which groups may use {project}", {"project": project})
    if len(changed) > 1:
        return fill("changed members of {project}: {users}", {"project": project, "users": enumerated(users)})
    values = {"user": users[0], "project": project}
    if changed[0] not in new:
        return fill("removed {user} from {project}" if words is ACTIVE else "{user} leaves {project}", values)
    if changed[0] not in old:
        template = "made {user} a member of {project}" if words is ACTIVE else "{user} becomes a member of {project}"
        roles = _counted("role", list(new[changed[0]]))
        return fill(f"{template} with the {{roles}}", {**values, "roles": roles})
    sentence = _joined([*_role_parts(old[changed[0]], new[changed[0]], words)], users[0])
    return (*sentence, *fill(" in {project}", values))


def _role_parts(old: Mapping[str, Any], new: Mapping[str, Any], words: Words) -> Iterator[Part]:
    given, taken = [name for name in new if name not in old], [name for name in old if name not in new]
    changed = [name for name in new if name in old and old[name] != new[name]]
    for template, names in ((words.given, given), (words.taken, taken), (words.changed, changed)):
        if names:
            yield template, {"roles": _counted("role", names)}


def _joined(parts: list[Part], user: Piece) -> Sentence:
    """Returns "gave Ann the role a and took the role b from them"."""
    pieces: Sentence = ()
    for index, ((first, later), values) in enumerate(parts):
        comma = "" if not index else " and " if index == len(parts) - 1 else ", "
        pieces += (Piece(comma), *fill(later if index else first, {**values, "user": user}))
    return tuple(piece for piece in pieces if piece.text or piece.kind)


def _counted(noun: str, names: list[str]) -> Sentence:
    return (Piece(f"{noun if len(names) == 1 else noun + 's'} "), *codes(names))


def _roles(value: Any) -> dict[str, Any]:
    """Returns role names with their limits: a role is stored as its name, or as an object with its name."""
    items = value if isinstance(value, list) else ()
    return {item["name"] if isinstance(item, dict) else str(item): item for item in items}


def _members(value: Any) -> dict[str, dict[str, Any]]:
    """Returns the roles of each member, by user id. Those at an application or group have its id: moderator (11)."""
    users = _object(value).get("users")
    return {user["user_id"]: _member_roles(user["roles"]) for user in users} if isinstance(users, list) else {}


def _member_roles(levels: Any) -> dict[str, Any]:
    roles: dict[str, Any] = {}
    for level, value in _object(levels).items():
        if level == "project":
            roles |= _roles(value)
        for resource, items in value.items() if isinstance(value, dict) else ():
            roles |= {f"{name} ({resource})": item for name, item in _roles(items).items()}
    return roles


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _rule(path: str) -> str:
    for end in _RULE_ENDS:
        path = path.removesuffix(end)
    return path
