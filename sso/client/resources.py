"""The resources of the management API (/api/admin/). The fields of records are those of ``sso apply``."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from sso.client.call import (
    ApiCall,
    ListCall,
    Record,
    ServerAnswer,
    if_match_header,
    read_body,
    read_page,
    read_record,
    without_none,
)

PREFIX = "/api/admin"
REVOCATION_S = 610.0  # what many users have granted to a client takes minutes to end; the service has 600 seconds


class Resource:
    """Records of one kind. ``key`` has the parts of the id, such as application and name of a role."""

    _change_s: float | None = None  # how long a change may take; None: as long as usual

    def __init__(self, path: str) -> None:
        self._path = PREFIX + path

    def list(self, *, limit: int | None = None, **filters: Any) -> ListCall:
        """A page of records; ``SsoClient.pages`` reads them all."""
        return ListCall("GET", self._path, read_page, without_none({"limit": limit, **filters}))

    def get(self, *key: str | int) -> ApiCall[Record]:
        return ApiCall("GET", self._at(*key), read_record)

    def create(self, fields: Mapping[str, Any], **query: Any) -> ApiCall[Record]:
        return ApiCall("POST", self._path, read_record, without_none(query), dict(fields))

    def update(
        self, *key: str | int, fields: Mapping[str, Any], if_match: str | None = None, **query: Any
    ) -> ApiCall[Record]:
        """Changes these fields. With ``if_match``, only the version that was read (RecordChanged otherwise)."""
        headers, given = if_match_header(if_match), without_none(query)
        return ApiCall(
            "PATCH", self._at(*key), read_record, given, dict(fields), headers=headers, timeout_s=self._change_s
        )

    def delete(self, *key: str | int, if_match: str | None = None, **query: Any) -> ApiCall[Record]:
        headers, given = if_match_header(if_match), without_none(query)
        return ApiCall("DELETE", self._at(*key), read_record, given, headers=headers, timeout_s=self._change_s)

    def _at(self, *parts: str | int) -> str:
        return "/".join((self._path, *(quote(str(part), safe="") for part in parts)))


class UserRecords(Resource):
    def sessions(self, user_id: str) -> ListCall:
        return ListCall("GET", self._at(user_id, "sessions"), read_page)

    def end_sessions(self, user_id: str) -> ApiCall[Record]:
        """Ends everything that was issued to the user."""
        return ApiCall("DELETE", self._at(user_id, "sessions"), read_record)

    def games(self, user_id: str) -> ListCall:
        return ListCall("GET", self._at(user_id, "games"), read_page)

    def end_game(self, user_id: str, sign_in_id: str) -> ApiCall[Record]:
        return ApiCall("DELETE", self._at(user_id, "games", sign_in_id), read_record)

    def factors(self, user_id: str) -> ListCall:
        return ListCall("GET", self._at(user_id, "factors"), read_page)

    def reset_factors(self, user_id: str) -> ApiCall[Record]:
        return ApiCall("DELETE", self._at(user_id, "factors"), read_record)

    def blocked_factors(self, user_id: str) -> ApiCall[Record]:
        """``blocked``: the second factors that accept no codes after too many wrong ones."""
        return ApiCall("GET", self._at(user_id, "factors", "block"), read_record)

    def unblock_factors(self, user_id: str) -> ApiCall[Record]:
        """Accepts codes again after too many wrong ones."""
        return ApiCall("DELETE", self._at(user_id, "factors", "block"), read_record)

    def bans(self, user_id: str) -> ListCall:
        return ListCall("GET", self._at(user_id, "bans"), read_page)

    def ban(
        self,
        user_id: str,
        scope: str | Mapping[str, Any] = "all",
        *,
        until: int | None = None,
        reason: str = "",
        note: str = "",
    ) -> ApiCall[Record]:
        """Bans the user. ``scope`` is "all", ``{"project_id": …}`` or ``{"application_id": …}``."""
        body = {"scope": scope, "until": until, "reason": reason, "note": note}
        return ApiCall("POST", self._at(user_id, "bans"), read_record, json=body)

    def unban(self, user_id: str, ban_id: str) -> ApiCall[Record]:
        return ApiCall("DELETE", self._at(user_id, "bans", ban_id), read_record)

    def erase(self, user_id: str, *, if_match: str | None = None) -> ApiCall[Record]:
        """Erases the account at once. It cannot be restored."""
        headers = if_match_header(if_match)
        return ApiCall("DELETE", self._at(user_id), read_record, {"now": 1}, headers=headers, timeout_s=300)

    def restore(self, user_id: str) -> ApiCall[Record]:
        """Keeps a closed account."""
        return ApiCall("POST", self._at(user_id, "restore"), read_record)

    def impersonate(self, user_id: str, reason: str, *, minutes: int = 15, writes: bool = False) -> ApiCall[str]:
        """Returns a link that opens the account page of the user as support, once and within 60 seconds."""
        body = {"reason": reason, "minutes": minutes, "writes": writes}
        return ApiCall("POST", self._at(user_id, "impersonate"), _read_url, json=body)

    def merge(self, user_id: str, into: str, *, dry_run: bool = False) -> ApiCall[dict[str, Any]]:
        """Merges the user into another one. ``moves``: what moves; a dry run says who would gain what, too."""
        query = {"dry_run": 1} if dry_run else {}
        return ApiCall("POST", self._at(user_id, "merge"), read_body, query, json={"into": into}, timeout_s=60)

    def unmerge(self, user_id: str, merged: str) -> ApiCall[Record]:
        """Undoes the merge of ``merged`` into the user. ``changed``: what was changed since, and stays."""
        return ApiCall("POST", self._at(user_id, "unmerge"), read_record, json={"from": merged}, timeout_s=60)

    def merges(self, user_id: str) -> ListCall:
        """The users who were merged into this one within the last 7 days."""
        return ListCall("GET", self._at(user_id, "merges"), read_page)

    def links(self, user_id: str) -> ListCall:
        """The keys of devices and the store accounts with which the user signs in."""
        return ListCall("GET", self._at(user_id, "links"), read_page)

    def remove_link(self, user_id: str, link_id: str) -> ApiCall[Record]:
        return ApiCall("DELETE", self._at(user_id, "links", link_id), read_record)

    def import_batch(
        self,
        batch: Sequence[Mapping[str, Any]],
        *,
        dry_run: bool = False,
        update: bool = False,
        passwords: bool = False,
        override: bool = False,
    ) -> ApiCall[Record]:
        """Imports at most 500 users of another service. ``results``: what was done with each."""
        body = {"users": list(batch), "update": update, "passwords": passwords, "override": override}
        query = {"dry_run": 1} if dry_run else {}
        return ApiCall("POST", self._at("import"), read_record, query, json=body, timeout_s=120)

    def export(self, user_id: str) -> ApiCall[Record]:
        """Everything that is stored about the user."""
        return ApiCall("POST", self._at(user_id, "export"), read_record, timeout_s=60)


class ClientRecords(Resource):
    _change_s = REVOCATION_S

    def _at(self, *parts: str | int) -> str:
        """The id of a client may be the address of its metadata document, which a path has in base64url."""
        client_id, *others = map(str, parts)
        if "/" in client_id:
            client_id = "~" + base64.urlsafe_b64encode(client_id.encode()).decode().rstrip("=")
        return super()._at(client_id, *others)

    def rotate_secret(
        self, client_id: str, *, overlap: int | None = None, expires_in: int | None = None, finish: bool = False
    ) -> ApiCall[Record]:
        """Adds a secret, which the answer has. With ``finish``, ends the old one. Durations are seconds."""
        body = without_none({"overlap": overlap, "expires_in": expires_in}) | ({"finish": True} if finish else {})
        return ApiCall("POST", self._at(client_id, "rotate-secret"), read_record, json=body, timeout_s=self._change_s)

    def refuse(self, client_id: str) -> ApiCall[Record]:
        """Deletes a client that waits for approval; disables it if its id is the address of a document."""
        return ApiCall("POST", self._at(client_id, "refuse"), read_record, timeout_s=self._change_s)

    def signal_streams(self, client_id: str) -> ListCall:
        return ListCall("GET", self._at(client_id, "signal-streams"), read_page)

    def send_example_signal(self, client_id: str, stream_id: str, event: str) -> ApiCall[Record]:
        """Adds an example of an event to a stream, about a user who does not exist."""
        path = self._at(client_id, "signal-streams", stream_id, "examples")
        return ApiCall("POST", path, read_record, json={"event": event})


class ApplicationRecords(Resource):
    def keys(self, application_id: int) -> ApiCall[dict[str, Any]]:
        """``data``: the public keys; ``private_key``: whether the service holds a private key (held, none)."""
        return ApiCall("GET", self._at(application_id, "keys"), read_body)

    def add_key(self, application_id: int, public_key: str) -> ApiCall[Record]:
        """Trusts a public key (PEM). The answer has its ``kid``."""
        return ApiCall("POST", self._at(application_id, "keys"), read_record, json={"public_key": public_key})

    def remove_key(self, application_id: int, kid: str) -> ApiCall[Record]:
        return ApiCall("DELETE", self._at(application_id, "keys", kid), read_record)

    def service_jwt(self, application_id: int) -> ApiCall[Record]:
        """``service_jwt`` is valid for an hour."""
        return ApiCall("POST", self._at(application_id, "service-jwt"), read_record)

    def email_secret(self, application_id: int) -> ApiCall[Record]:
        """``email_secret``, which is created if there is none."""
        return ApiCall("POST", self._at(application_id, "email-secret"), read_record)

    def data_secret(self, application_id: int) -> ApiCall[Record]:
        """``data_secret`` signs requests about personal data. It is created if there is none."""
        return ApiCall("POST", self._at(application_id, "data-secret"), read_record)


class ProviderRecords(Resource):
    def linked_users(self, provider_id: str) -> ApiCall[dict[str, int]]:
        """``linked``: how many users sign in with it; ``without_other_sign_in``: how many have no other way."""
        return ApiCall("GET", self._at(provider_id), _read_linked_users)


class WebhookRecords(Resource):
    def failed(self, webhook_id: str, *, limit: int | None = None) -> ListCall:
        """The events that could not be delivered, the oldest first."""
        return ListCall("GET", self._at(webhook_id, "failed"), read_page, without_none({"limit": limit}))

    def retry(self, webhook_id: str, ids: Sequence[str] | None = None) -> ApiCall[Record]:
        """Sends failed events again: those with these ids, or all. The answer has their number, ``events``."""
        body = {} if ids is None else {"ids": list(ids)}
        return ApiCall("POST", self._at(webhook_id, "failed", "retry"), read_record, json=body)


class StateDocument:
    """The state of the service as a document of ``sso apply``."""

    def export(self) -> ApiCall[dict[str, Any]]:
        return ApiCall("GET", f"{PREFIX}/state", _read_document)

    def diff(self, document: Mapping[str, Any]) -> ApiCall[Record]:
        """What applying the document would change."""
        return ApiCall("POST", f"{PREFIX}/state/diff", read_record, json=dict(document))

    def apply(
        self, document: Mapping[str, Any], *, dry_run: bool = False, override: bool = False
    ) -> ApiCall[dict[str, Any]]:
        """Returns the numbers of records and warnings. A dry run also has what would change, and for whom."""
        query = without_none({"dry_run": dry_run or None, "override": override or None})
        return ApiCall("POST", f"{PREFIX}/state/apply", _read_report, query, dict(document), timeout_s=300)


def members(project_id: str) -> Resource:
    """The members of a project. The id of a record is that of the user."""
    return Resource(f"/projects/{quote(project_id, safe='')}/members")


def _read_url(answer: ServerAnswer) -> str:
    return str(answer.body["url"])


def _read_linked_users(answer: ServerAnswer) -> dict[str, int]:
    return dict(answer.body["users"])


def _read_report(answer: ServerAnswer) -> dict[str, Any]:
    members = {name: value for name, value in answer.body.items() if name not in ("status", "data")}
    return {"warnings": [], **members, **answer.body.get("data", {})}


def _read_document(answer: ServerAnswer) -> dict[str, Any]:
    document = answer.body["data"]
    assert isinstance(document, dict)
    return document


def check_assertions(application_id: int | None = None) -> ApiCall[Record]:
    """The numbers of ``checked`` assertions, of one application or of all, those that ``failed``, and ``warnings``."""
    body = without_none({"application_id": application_id})
    return ApiCall("POST", f"{PREFIX}/assertions/test", read_record, json=body, timeout_s=60)


def system() -> ApiCall[Record]:
    """The nodes of the installation, their database and the queue of mails."""
    return ApiCall("GET", f"{PREFIX}/system", read_record)


users = UserRecords("/users")
invitations = Resource("/invitations")
registration_tokens = Resource("/registration-tokens")
violations = Resource("/violations")
clients = ClientRecords("/clients")
identity_providers = ProviderRecords("/identity-providers")
applications = ApplicationRecords("/applications")
schemas = Resource("/schemas")
roles = Resource("/roles")
access_keys = Resource("/access-keys")
projects = Resource("/projects")
groups = Resource("/groups")
signing_keys = Resource("/signing-keys")
game_sessions = Resource("/game-sessions")
webhooks = WebhookRecords("/webhooks")
audit = Resource("/audit")
state = StateDocument()
