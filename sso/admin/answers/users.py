"""The shapes of users and what belongs to them."""

from typing import Any, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from sso.accounts.user_record import UserChanges
from sso.admin.answers.shape import RecordShape

Time: TypeAlias = str  # RFC 3339


class _UserJson(TypedDict):
    user_id: str
    level: str
    second_factors: list[str]
    reg_time: Time
    terms_version: str
    terms_accepted: Time | None
    deletion_due: Time | None
    deletion_by: str | None
    merged_into: str | None
    banned: bool


USER = RecordShape("User", UserChanges, _UserJson, ("password", "totp_secret"))


class ImportedUserJson(TypedDict):
    outcome: Literal["created", "updated", "unchanged", "skipped"]
    user_id: str | None
    notes: list[str]


class UserImportJson(TypedDict):
    created: int
    updated: int
    unchanged: int
    skipped: int
    results: list[ImportedUserJson]  # in the order of the request


class BrowserSessionJson(TypedDict):
    id: str
    created: Time
    last_seen: Time
    address: str
    device: str


class GameSignInJson(TypedDict):
    ids: list[str]
    title: str
    address: str
    first_used: Time
    last_used: Time


class DataRequestJson(TypedDict):
    id: str
    request_id: str
    kind: Literal["data", "characters", "remove"]
    user_id: str
    subject_id: str
    application_id: int
    state: Literal["pending", "waiting", "done", "failed"]
    created: Time
    finished: Time | None
    tries: int
    next_try: Time | None
    deadline: Time
    problem: str


class UserLinkJson(TypedDict):
    id: str
    kind: Literal["key", "store_account"]
    name: str
    created: Time
    last_used: Time


class MergeMovesJson(TypedDict):
    """What moves from a user to the other one."""

    keys: list[str]
    store_accounts: list[str]
    games: list[dict[str, Any]]
    assignments: list[dict[str, Any]]
    memberships: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    tags: list[str]
    purchases: list[str]


RecentMergeJson = TypedDict("RecentMergeJson", {"from": str, "at": Time})


class UnmergedJson(TypedDict):
    changed: list[str]


class SecondFactorJson(TypedDict):
    type: str
    count: int


class BlockedFactorsJson(TypedDict):
    blocked: list[str]


class PersonalDataJson(TypedDict):
    exported_at: Time
    incomplete: list[str]
    merged_users: list[dict[str, Any]]
    account: dict[str, Any]
    sign_in: dict[str, Any]
    browsers: list[dict[str, Any]]
    games: dict[str, Any]
    game_data: dict[str, Any]
    sites: dict[str, Any]
    mailed_links: list[dict[str, Any]]
    permissions: dict[str, Any]
    bans: list[dict[str, Any]]
    changes: dict[str, Any]
    history: list[dict[str, Any]]
    audit: list[dict[str, Any]]


class BanJson(TypedDict):
    id: str
    user_id: str
    scope: str | dict[str, Any]
    until: int | None
    reason: str
    note: str
    author: str
    created: Time


class InvitationJson(TypedDict):
    id: str
    login: str
    created: Time
    expires: Time


class NewInvitationJson(TypedDict):
    login: str
    link: str
    mailed: bool


class AuditEntryJson(TypedDict):
    id: int
    at: Time
    user_id: str
    service_id: int | None
    key_id: str | None
    client_id: str | None
    operator: str
    address: str
    operation: str
    target: str
    project_id: str | None
    application_id: int | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


# The names of a merge; one of them is a keyword.
_MergeNames = TypedDict("_MergeNames", {"from": NotRequired[str], "into": NotRequired[str]})


class ChangeEventJson(_MergeNames):
    """An event of the stream. Its type says which fields it has."""

    id: str
    time: Time
    type: NotRequired[str]
    user_id: NotRequired[str]
    application_id: NotRequired[int]
    gained: NotRequired[list[str]]
    lost: NotRequired[list[str]]
    users: NotRequired[int]
    erasure_due: NotRequired[Time]
    disabled: NotRequired[bool]
    ban_id: NotRequired[str]
    scope: NotRequired[str | dict[str, Any]]
    until: NotRequired[int | None]
    reason: NotRequired[str]
    kid: NotRequired[str]
    algorithm: NotRequired[Literal["RS256", "ES256", "EdDSA"]]
    key_id: NotRequired[str]
    client_id: NotRequired[str]
