"""Rules of a role as short texts: ``chat.mute``, ``chat.mute|eu`` (with a parameter), ``public_data.title=Major``.

A rule without a section is in ``private_data``, and a rule without a value is true: as permissions are listed. Wrong
texts raise ValueError.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from sso.perm.engine.reserved_names import RULE_MEMBERS, SECTIONS
from sso.perm.engine.rules import LISTED_SECTIONS, rule_nodes


def add_rules(meta: Mapping[str, Any], texts: Iterable[str]) -> dict[str, Any]:
    """``meta`` of a role with these rules added or replaced. `read_role` checks names, parameters and values."""
    changed: dict[str, Any] = copy.deepcopy(dict(meta))
    for text in texts:
        rule, _, params = text.rpartition("|") if "|" in text else (text, "", "")
        path, has_value, value = rule.partition("=")
        node: dict[str, Any] = changed
        for name in _names(path):
            node = node.setdefault(name, {})
        kept = {name: item for name, item in node.items() if name not in ("value", "params")}
        node.clear()
        node.update(kept, value=_read_value(value, path) if has_value else True)
        if params:
            node["params"] = params
    return changed


def remove_rules(meta: Mapping[str, Any], texts: Iterable[str]) -> dict[str, Any]:
    """``meta`` of a role without these rules, and without sections that become empty."""
    changed: dict[str, Any] = copy.deepcopy(dict(meta))
    for text in texts:
        names = _names(text)
        if ".".join(names) not in dict(_rules(changed)):
            raise ValueError(f"the role has no rule {text}")
        _remove(changed, names)
    return changed


def rule_texts(meta: Mapping[str, Any]) -> list[str]:
    """The rules of a role, as `add_rules` reads them."""
    texts = []
    for path, node in _rules(meta):
        value = "" if node["value"] is True else f"={value_text(node['value'])}"
        params = f"|{node.get('params', '')}" if node.get("params") or "|" in value else ""
        texts.append(f"{path.removeprefix('private_data.')}{value}{params}")
    return sorted(texts)


def _rules(meta: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for section in LISTED_SECTIONS:
        yield from rule_nodes(meta.get(section, {}), section)


def _names(path: str) -> list[str]:
    """The section and the names of a rule."""
    names = path.split(".")
    if "" in names:
        raise ValueError("expected a rule such as chat.mute")
    for name in RULE_MEMBERS.intersection(names):
        raise ValueError(f"{name} is a reserved name")
    if names[0] in LISTED_SECTIONS and len(names) > 1:
        return names
    if names[0] in SECTIONS:
        raise ValueError(f"a role has rules of {' and '.join(LISTED_SECTIONS)} only")
    return ["private_data", *names]


def _remove(tree: dict[str, Any], names: list[str]) -> None:
    name, *below = names
    if below:
        _remove(tree[name], below)
    if not below or not tree[name]:
        del tree[name]


def _read_value(text: str, path: str) -> Any:
    """A JSON scalar, or the text itself."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict | list):
        raise ValueError(f"{path}: must be a string, a number, true, false or null")  # noqa: TRY004
    return value


def value_text(value: Any) -> str:
    """The shortest text that `_read_value` reads as this value."""
    return value if isinstance(value, str) and not is_json(value) else orjson.dumps(value).decode()


def is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except ValueError:
        return False
    return True
