"""Ids of records that are addresses, as a part of a path: a path cannot have a slash inside of a part."""

import base64
import binascii

_MARK = "~"  # no other id begins with it


def path_id(record_id: str) -> str:
    """Returns the id for a path: an address as ``~`` and its base64url, any other id as it is."""
    if "/" not in record_id:
        return record_id
    return _MARK + base64.urlsafe_b64encode(record_id.encode()).rstrip(b"=").decode()


def from_path_id(text: str) -> str:
    """Returns the id that a part of a path stands for. A text that stands for no id is returned as it is."""
    if not text.startswith(_MARK):
        return text
    encoded = text[1:]
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return text
    return decoded if path_id(decoded) == text else text  # an id has one form
