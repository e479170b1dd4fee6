"""Checks of a condition object (§2.7).

An unknown member is an error here, and not ignored as in other records: a condition without its misspelt member would
hold for more users.
"""

from difflib import get_close_matches
from typing import NoReturn

from sso.core.field_errors import FieldError, FieldPath, is_plain_name
from sso.core.net import parse_network
from sso.perm.input.time_windows import check_time_window
from sso.perm.input.validators import check_domain, read, read_array, read_flag, read_word

MEMBERS = ("domain", "uid", "tag", "ip", "purchase", "time", "everyone", "and", "or")
MAX_NODES = 256
MAX_LEVELS = 64
MAX_USER_ID = 64


def check_condition(value: object, path: FieldPath = ("condition",), *, ip_allowed: bool = True) -> None:
    """Raises FieldError for a malformed condition. `engine.decode` decodes what passes."""
    _ConditionChecker(path, ip_allowed).check(value, path, 1)


class _ConditionChecker:
    def __init__(self, root: FieldPath, ip_allowed: bool) -> None:
        self._root = root
        self._ip_allowed = ip_allowed
        self._nodes = 0

    def check(self, value: object, path: FieldPath, level: int) -> None:
        if not isinstance(value, dict):
            raise FieldError(path, "must be an object")
        self._count(1)
        if level > MAX_LEVELS:
            raise FieldError(self._root, f"must have at most {MAX_LEVELS} levels")
        for member, member_value in value.items():
            self._check_member(member, member_value, path, level)

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise FieldError(self._root, f"must have at most {MAX_NODES} nodes")

    def _check_member(self, member: str, value: object, condition_path: FieldPath, level: int) -> None:
        path = (*condition_path, member)
        match member:
            case "domain":
                read(check_domain, value, path)
            case "uid":
                for index, user_id in enumerate(read_array(value, path)):
                    read_word(user_id, (*path, index), MAX_USER_ID)
            case "tag" | "purchase":
                read_word(value, path)
            case "ip":
                self._check_network(value, path)
            case "time":
                self._count(check_time_window(value, path))
            case "everyone":
                read_flag(value, path)
            case "and" | "or":
                for index, part in enumerate(read_array(value, path)):
                    self.check(part, (*path, index), level + 1)
            case _:
                _refuse_member(member, condition_path)

    def _check_network(self, value: object, path: FieldPath) -> None:
        if not self._ip_allowed:
            raise FieldError(path, "a group's condition must not ask for ip, only that of a role can")
        try:
            parse_network(value)  # type: ignore[arg-type]  # it refuses other types
        except ValueError as error:
            raise FieldError(path, str(error)) from None


def _refuse_member(member: str, path: FieldPath) -> NoReturn:
    """Only a plain name is repeated: others could break the reader's screen."""
    known = ", ".join(MEMBERS)
    if not is_plain_name(member):
        raise FieldError(path, f"has an unknown member; known are {known}")
    if close := get_close_matches(member.lower(), MEMBERS, 1):
        raise FieldError(path, f'"{member}" is not known. Did you mean "{close[0]}"?')
    raise FieldError(path, f'"{member}" is not known; known are {known}')
