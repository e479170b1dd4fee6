"""Read a condition object (§2.7). Unlike other input it has no ignored fields: a misspelt member would widen it."""

from typing import Any

from sso.core.domains import domain_key
from sso.core.net import parse_network
from sso.perm.engine.conditions import Condition
from sso.perm.errors import InvalidInput
from sso.perm.input import validators

MAX_NODES = 256
MAX_LEVELS = 64
MAX_TITLE = 256
MAX_CONDITIONS = 100  # per group
_GROUP_CONDITION = frozenset(("title", "condition"))


def read_condition(value: object, where: str = "condition", *, ip_allowed: bool = True) -> Condition:
    return _Reader(where, ip_allowed).read(value, where, 1)


def read_role_condition(value: object, where: str = "condition") -> Condition | None:
    """The condition of a role: an empty object, or none at all, means that the role has no condition."""
    if value is None or value == {}:
        return None
    return read_condition(value, where)


def read_group_conditions(value: object, where: str = "conditions") -> tuple[list[dict[str, Any]], list[str]]:
    """The conditions of a group: title and condition are required, and ``ip`` is refused at any depth."""
    items = validators.an_array(value, where, MAX_CONDITIONS)
    found: list[dict[str, Any]] = []
    warnings: list[str] = []
    for at, item in enumerate(items):
        place = f"{where}[{at}]"
        for member in ("title", "condition"):
            if member not in validators.an_object(item, place):
                raise InvalidInput(f"{place}.{member}: is required")
        warnings += validators.unknown(item, _GROUP_CONDITION, place)
        validators.word(item["title"], f"{place}.title", MAX_TITLE)
        read_condition(item["condition"], f"{place}.condition", ip_allowed=False)
        found.append({"title": item["title"], "condition": item["condition"]})
    return found, warnings


class _Reader:
    def __init__(self, root: str, ip_allowed: bool) -> None:
        self._root = root
        self._ip_allowed = ip_allowed
        self._nodes = 0

    def read(self, value: object, where: str, level: int) -> Condition:
        if not isinstance(value, dict):
            raise InvalidInput(f"{where}: must be an object")
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise InvalidInput(f"{self._root}: must have at most {MAX_NODES} nodes")
        if level > MAX_LEVELS:
            raise InvalidInput(f"{self._root}: must have at most {MAX_LEVELS} levels")
        return Condition(**dict(self._member(member, part, where, level) for member, part in value.items()))

    def _member(self, member: str, value: object, where: str, level: int) -> tuple[str, Any]:
        match member:
            case "domain":
                return "domain", domain_key(validators.domain(value, f"{where}.domain"))
            case "uid":
                items = validators.an_array(value, f"{where}.uid")
                return "uid", frozenset(
                    validators.word(item, f"{where}.uid[{at}]", 64) for at, item in enumerate(items)
                )
            case "tag" | "purchase":
                return member, validators.word(value, f"{where}.{member}")
            case "ip":
                return "ip", self._network(value, f"{where}.ip")
            case "everyone":
                return "everyone", validators.flag(value, f"{where}.everyone")
            case "and" | "or":
                parts = validators.an_array(value, f"{where}.{member}")
                read = (self.read(part, f"{where}.{member}[{at}]", level + 1) for at, part in enumerate(parts))
                return ("all_of" if member == "and" else "any_of"), tuple(read)
        raise InvalidInput(
            f"{where}: has an unknown member; known are domain, uid, tag, ip, purchase, everyone, and, or"
        )

    def _network(self, value: object, where: str) -> Any:
        if not self._ip_allowed:
            raise InvalidInput(f"{where}: a group's condition must not ask for ip")
        try:
            return parse_network(value)  # type: ignore[arg-type]  # it refuses what is no string
        except ValueError as error:
            raise InvalidInput(f"{where}: {error}") from None
