"""The export of everything that is stored about a user, as a JSON document."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.user_record import exportable_fields
from sso.accounts.user_store import get_user
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.personal_data.export_store import keep_user, read_lists, read_merged_ids, read_time

EXPORT_SECONDS = 10.0
MAX_MERGED_USERS = 100  # a document has the data of


async def export_user(database: Database, user_id: str, actor: AuditActor | None = None) -> bytes:
    """Returns the document as JSON, with the data of users who were merged into the user.

    The export is added to the history, which it contains. That of an operator, the ``actor``, is also added to the
    audit trail. One export runs at a time, for all callers of this process. Raises NotFound if the user has been
    erased.
    """
    with database.shares.limit_evaluation("personal data", f"user {user_id}"):
        return await database.long_transaction(EXPORT_SECONDS, _export_audited, user_id, actor)


async def _export_audited(tx: Transaction, user_id: str, actor: AuditActor | None) -> bytes:
    document = await _export(tx, user_id)
    if actor is not None:
        await trail.write(tx, actor, "user.export", user_id, None, {"exported": True})
    return document


async def _export(tx: Transaction, user_id: str) -> bytes:
    if not await keep_user(tx, user_id):  # an erasure, a merge and its undo wait until the export is done
        raise NotFound
    await record_event(tx, user_id, EventKind.DATA_EXPORTED)
    merged_ids, sizes = await read_merged_ids(tx, user_id), Counter[str]()
    document = await _read_user(tx, user_id, sizes) | {"exported_at": _text(await read_time(tx))}
    document["merged_users"] = [await _read_user(tx, merged, sizes) for merged in merged_ids[:MAX_MERGED_USERS]]
    if len(merged_ids) > MAX_MERGED_USERS:
        document["incomplete"].append("merged_users")
    return orjson.dumps(document, option=orjson.OPT_INDENT_2)


async def _read_user(tx: Transaction, user_id: str, sizes: Counter[str]) -> dict[str, Any]:
    lists = await read_lists(tx, user_id, sizes)
    return _document(await get_user(tx, user_id), {name: exported.entries for name, exported in lists.items()}) | {
        # The lists that have further entries: those of the audit trail and of permissions are the oldest ones.
        "incomplete": sorted(name for name, exported in lists.items() if not exported.is_complete),
    }


def _document(user: User, lists: Mapping[str, orjson.Fragment]) -> dict[str, Any]:
    return {
        "account": _account(user),
        "sign_in": {
            "password": user.password_hash is not None,
            "second_factors": list(user.second_factors),
            "recovery_codes": lists["recovery_code_sets"],
            "passkeys": lists["passkeys"],
            "device_keys": lists["device_keys"],
            "merges": lists["user_merges"],
            "linked_identities": lists["linked_identities"],
            "known_devices": lists["known_factors"],
        },
        "browsers": lists["browser_sessions"],
        "games": {"sign_ins": lists["sign_ins"], "session_tokens": lists["session_tokens"]},
        "game_data": {"applications": lists["used_applications"], "requests": lists["data_requests"]},
        "sites": {"consents": lists["oauth_consents"], "grants": lists["oauth_grants"]},
        "mailed_links": lists["mailed_links"],
        "permissions": {
            "data": lists["user_records"],
            "roles": lists["role_assignments"],
            "memberships": lists["project_members"],
            "groups": lists["group_users"],
            "history": lists["permission_history"],
        },
        "bans": lists["user_bans"],
        "changes": {"events": lists["change_events"], "failed_webhooks": lists["webhook_failures"]},
        "history": lists["account_events"],
        "audit": lists["audit"],
    }


def _account(user: User) -> dict[str, Any]:
    return exportable_fields(user) | {
        "reg_time": _text(user.reg_time),
        "disabled": user.disabled,
        "terms_version": user.terms_version,
        "terms_accepted": _text(user.terms_accepted) if user.terms_accepted else None,
        "deletion_due": _text(user.deletion_due) if user.deletion_due else None,
    }


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
