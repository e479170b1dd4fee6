"""Archives of ``sso backup``, changed as somebody without the passphrase could."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {info.name: file.read() for info in tar if (file := tar.extractfile(info))}


def rewritten(archive: Path, target: Path, changes: Mapping[str, bytes | None]) -> Path:
    """Writes the archive with other members (None removes one), and with digests that fit them."""
    content = {name: data for name, data in {**members(archive), **changes}.items() if data is not None}
    if "database.sha256" in content:
        content["database.sha256"] = hashlib.sha256(content["database.dump"]).hexdigest().encode()
    if "digests.json" in content:
        names = [name for name in content if not name.startswith("digests.")]
        content["digests.json"] = json.dumps(
            {name: hashlib.sha256(content[name]).hexdigest() for name in names}
        ).encode()
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return target
