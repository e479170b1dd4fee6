"""The manifest of a backup: what it was made of, readable without the passphrase."""

import json
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from sso.backup import BackupError

FORMAT = 2
UNAUTHENTICATED_FORMAT = 1  # written by earlier versions of the program
MANIFEST = "manifest.json"


class Manifest(Struct, frozen=True):
    program: str
    schema: str
    postgres: str
    created: str
    has_keys: bool
    encrypted: bool = False
    format: int = FORMAT

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), indent=2).encode()


def parse_manifest(data: bytes) -> Manifest:
    try:
        values: dict[str, Any] = json.loads(data)
        manifest = Manifest(**values)
    except (ValueError, TypeError, RecursionError):
        raise BackupError("the manifest of the backup cannot be read: another version made it") from None
    if manifest.format not in (UNAUTHENTICATED_FORMAT, FORMAT):
        raise BackupError(f"the backup has format {manifest.format}, this program reads format 1 to {FORMAT}")
    if any(
        type(value) is not type(example) for value, example in zip(asdict(manifest).values(), _EXAMPLE, strict=True)
    ):
        raise BackupError("the manifest of the backup cannot be read: a value has the wrong type")
    return manifest


_EXAMPLE = asdict(Manifest("", "", "", "", has_keys=False)).values()
