"""The link of a notice that leads to the undo of what was changed."""

from typing import Any

from sso.console.audit.undo import CannotUndo
from sso.console.audit.undo_operations import undo_of
from sso.console.audit.undo_rights import require_undo_rights
from sso.console.sections import AUDIT
from sso.console.visit import ConsoleVisit
from sso.core.errors import Forbidden

MAX_DIGITS = 19  # of an id


def undoable_entry(visit: ConsoleVisit) -> str:
    """Returns the id of the entry that this request has written, if it is the only one that the user can undo."""
    last = {(entry["operation"], entry["target"]): entry for entry in visit.entries}
    found = [str(entry["id"]) for entry in last.values() if _can_undo(visit, entry)]
    return found[0] if len(found) == 1 else ""


def undo_path(visit: ConsoleVisit, entry_id: str) -> str:
    """Returns the page that asks whether to undo an entry; "" if the text is no id, or the user may not open it."""
    is_id = entry_id.isascii() and entry_id.isdecimal() and len(entry_id) <= MAX_DIGITS
    return f"{AUDIT.path}/{entry_id}/undo" if is_id and AUDIT.is_open_to(visit.caller, visit.own) else ""


def _can_undo(visit: ConsoleVisit, entry: dict[str, Any]) -> bool:
    """The page of the undo checks it again, with the record as it is then."""
    undo = undo_of(entry)
    if isinstance(undo, CannotUndo) or not visit.may(undo.method, undo.path):
        return False
    try:
        require_undo_rights(visit.caller, undo, None)
    except Forbidden:
        return False
    return AUDIT.is_open_to(visit.caller, visit.own)
