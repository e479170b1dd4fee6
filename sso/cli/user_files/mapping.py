"""Names of the source and what they become here: roles of applications, tags, identity providers."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BeforeValidator, Field, ValidationError

from sso.cli.context import CommandFailure
from sso.cli.records.types import Fields
from sso.cli.user_files.model import SourceUser
from sso.core.field_errors import field_text
from sso.core.records import RecordModel, Tag, Word
from sso.web.request_model import expectation


class Target(RecordModel):
    """What a role or a group of the source becomes: a tag, which conditions compare with, or a role."""

    tag: Tag | None = None
    application_id: Annotated[int, Field(ge=2)] | None = None
    role: Word | None = None


Targets = Annotated[list[Target], BeforeValidator(lambda value: [value] if isinstance(value, dict) else value)]


class Mapping(RecordModel):
    """A name becomes one target, or several."""

    roles: dict[str, Targets] = Field(default_factory=dict)
    groups: dict[str, Targets] = Field(default_factory=dict)
    providers: dict[str, Word] = Field(default_factory=dict)


class NameMapping:
    """Counts the names that the mapping does not have, for the report."""

    def __init__(self, mapping: Mapping | None = None) -> None:
        self._mapping = mapping or Mapping()
        self.unknown: Counter[str] = Counter()

    def record(self, user: SourceUser, source: str) -> Fields:
        """Returns the user for the management API."""
        fields = dict(user.fields)
        targets = [
            *self._targets("role", self._mapping.roles, user.roles),
            *self._targets("group", self._mapping.groups, user.groups),
        ]
        if tags := [target.tag for target in targets if target.tag]:
            fields["tags"] = list(dict.fromkeys([*fields.get("tags", []), *tags]))
        roles = [{"application_id": item.application_id, "role": item.role} for item in targets if item.role]
        if roles:
            fields["roles"] = [
                *fields.get("roles", []),
                *(role for n, role in enumerate(roles) if role not in roles[:n]),
            ]
        if identities := [self._identity(item) for item in user.identities]:
            fields["identities"] = identities
        if user.source_id:
            fields["meta"] = {**fields.get("meta", {}), "imported": {"source": source, "id": user.source_id}}
        return fields

    def _targets(self, kind: str, known: dict[str, list[Target]], names: list[str]) -> list[Target]:
        self.unknown.update(f"{kind} {name}" for name in names if name not in known)
        return [target for name in names for target in known.get(name, ())]

    def _identity(self, identity: Fields) -> Fields:
        provider = str(identity.get("provider", ""))
        return identity | {"provider": self._mapping.providers.get(provider, provider)}


def read_mapping(path: Path | None) -> NameMapping:
    """Raises CommandFailure."""
    if path is None:
        return NameMapping()
    try:
        mapping = Mapping.model_validate(orjson.loads(path.read_bytes()))
    except OSError as error:
        raise CommandFailure(f"cannot read {path}: {error.strerror}") from None
    except ValidationError as error:
        first: Any = error.errors(include_input=False, include_url=False)[0]
        raise CommandFailure(f"{path}: {field_text(first['loc'])}: {_problem(first)}") from None
    except ValueError:
        raise CommandFailure(f"{path}: expected JSON") from None
    for name, target in (
        (name, target)
        for names in (mapping.roles, mapping.groups)
        for name, targets in names.items()
        for target in targets
    ):
        if (target.role is None) != (target.application_id is None) or (target.tag is None and target.role is None):
            raise CommandFailure(f"{path}: {name}: expected a tag, or an application_id and a role")
    return NameMapping(mapping)


def _problem(detail: Any) -> str:
    return "unknown field" if detail["type"] == "extra_forbidden" else expectation(detail)
