"""What the permission endpoints answer with in ``data``. An endpoint with several actions answers in several ways."""

from sso.web.api_description import OBJECT, STRING, JsonSchema, properties

_INTEGER: JsonSchema = {"type": "integer"}
_BOOLEAN: JsonSchema = {"type": "boolean"}
_STRINGS: JsonSchema = {"type": "array", "items": STRING}
_OPTIONAL_STRING: JsonSchema = {"type": ["string", "null"]}


def _list_of(item: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": item}


APPLICATION = properties(
    ("application_id", "name"),
    application_id=_INTEGER,
    name=STRING,
    description=STRING,
    project_id=STRING,
    removed=_BOOLEAN,
    settings=OBJECT,
    service_meta=OBJECT,
)
PROJECT = properties(
    ("id", "title"),
    id=STRING,
    title=STRING,
    description=STRING,
    aliases=_STRINGS,
    tags=_STRINGS,
    settings=OBJECT,
    author=STRING,
    created=STRING,
    removed=_BOOLEAN,
)
MEMBERSHIP = properties(
    ("id", "users"),
    id=STRING,
    users=_list_of(properties(("user_id", "roles"), user_id=STRING, roles=OBJECT)),
    allow=_STRINGS,
    disallow=_STRINGS,
)
_CONDITION = properties(("title", "condition"), title=STRING, condition=OBJECT)
GROUP_ACCESS = properties(("id",), id=STRING, users=_STRINGS, conditions=_list_of(_CONDITION))
GROUP = properties(
    ("id", "project_id", "title"),
    id=STRING,
    project_id=STRING,
    title=STRING,
    description=STRING,
    tags=_STRINGS,
    users=_STRINGS,
    conditions=_list_of(_CONDITION),
)
GROUPS: JsonSchema = {
    "anyOf": [GROUP, properties(("groups", "max_users_cnt"), groups=_list_of(GROUP), max_users_cnt=_INTEGER)]
}
_ACCESS_KEY = properties(
    ("id",),
    id=STRING,
    application_id=_INTEGER,
    comment=STRING,
    created=STRING,
    modified=STRING,
    last_used=STRING,
    hash=STRING,
)
ACCESS_KEYS: JsonSchema = {"anyOf": [_ACCESS_KEY, _list_of(_ACCESS_KEY)]}
_ROLE = properties(
    ("name",),
    name=STRING,
    meta=OBJECT,
    description=STRING,
    protected=_BOOLEAN,
    default=_BOOLEAN,
    condition=OBJECT,
    user_limit=_INTEGER,
    params=STRING,
)
ROLES: JsonSchema = {"anyOf": [_ROLE, _list_of(_ROLE)]}
SCHEMA = properties(
    ("application_id",),
    application_id=_INTEGER,
    version=_INTEGER,
    updated_at=_INTEGER,
    roles=OBJECT,
    login=OBJECT,
    public_data=OBJECT,
    private_data=OBJECT,
    secret_data=OBJECT,
)
PERMISSIONS: JsonSchema = {"anyOf": [_STRINGS, OBJECT]}
CHECKED = _list_of(properties(("allow",), allow=_BOOLEAN, error=STRING, reason=OBJECT))
AUDIT = _list_of(
    properties(
        ("id", "at", "operation"),
        id=_INTEGER,
        at={"type": ["string", "integer"]},
        user_id=STRING,
        operation=STRING,
        target=STRING,
        project_id=_OPTIONAL_STRING,
        application_id={"type": ["integer", "null"]},
        before={"type": ["object", "null"]},
        after={"type": ["object", "null"]},
    )
)
NOTHING: JsonSchema = OBJECT

# The members of every answer to a change, and of one that was only tried.
WRITE_MEMBERS: dict[str, JsonSchema] = {
    "warnings": _STRINGS,
    "dry_run": _BOOLEAN,
    "users": _list_of(
        properties(("user_id",), user_id=STRING, application_id=_INTEGER, gained=_STRINGS, lost=_STRINGS)
    ),
    "total": _INTEGER,
    "exact": _BOOLEAN,
    "failed_assertions": _list_of(properties(application_id=_INTEGER, assertion=STRING, reason=STRING, users=_STRINGS)),
}
