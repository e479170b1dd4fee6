"""The declaration of a setting, as a field of a dataclass."""

from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class SettingInfo(NamedTuple):
    """What is known about a setting besides its name and its default."""

    parse: Callable[[object], Any]
    description: str
    example: str | int | None  # a possible value, where the default is none
    default_text: str  # the default in words, where it depends on something else
    see: str  # the page of the documentation about it


def setting(
    default: T,
    parse: Callable[[object], T],
    description: str,
    *,
    example: str | int | None = None,
    default_text: str = "",
    see: str = "",
) -> T:
    info = SettingInfo(parse, description, example, default_text, see)
    result: T = field(default=default, metadata={"info": info})
    return result


def setting_fields(settings: type) -> Mapping[str, Field[Any]]:
    """Returns the fields of a dataclass that are settings, by their names."""
    return {item.name: item for item in fields(settings) if "info" in item.metadata}


def setting_info(item: Field[Any]) -> SettingInfo:
    info: SettingInfo = item.metadata["info"]
    return info


def default_in_words(item: Field[Any]) -> str:
    plain = plain_value(item.default)
    if isinstance(plain, list):
        plain = ", ".join(plain)
    return setting_info(item).default_text or ("none" if plain in (None, "") else str(plain))


def plain_value(value: object) -> str | int | list[str] | None:
    """Returns a value as it is written in a settings file."""
    match value:
        case bool():
            return int(value)
        case int() | str() | None:
            return value
        case tuple():
            return [str(entry) for entry in value]
    return str(value)
