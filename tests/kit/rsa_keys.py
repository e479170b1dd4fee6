"""RSA keys that all processes of a test run share: generating one takes as long as a quarter of a second."""

import mmap
import os
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from sso.core import keys
from tests.kit.prepared_data import prepared_folder

DIFFERENT_KEYS = 16  # servers that are started one after another have different ones


def shared_rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Returns the key of this name, which the first process that needs it generates."""
    folder = prepared_folder()
    if not folder or not os.access(folder, os.W_OK):  # a server that runs under another account
        return rsa.generate_private_key(public_exponent=65537, key_size=bits)
    path = folder / f"{name}-{bits}.pem"
    if not path.exists():
        _write(path, rsa.generate_private_key(public_exponent=65537, key_size=bits))
    key = load_pem_private_key(path.read_bytes(), None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def use_shared_rsa_key(number: int) -> None:
    """The first RSA key that this process or one of its forks generates is a shared one; the next ones are new."""
    taken = mmap.mmap(-1, 1)
    generate = keys.GENERATE["RS256"]

    def take_or_generate() -> keys.PrivateKey:
        if taken[0]:
            return generate()
        taken[0] = 1
        return shared_rsa_key(f"server{number % DIFFERENT_KEYS}")

    keys.GENERATE["RS256"] = take_or_generate


def _write(path: Path, key: rsa.RSAPrivateKey) -> None:
    """Writes a key, unless another process has written one of this name meanwhile: all must use the same."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with suppress(FileExistsError):
        os.link(new, path)
    new.unlink()
