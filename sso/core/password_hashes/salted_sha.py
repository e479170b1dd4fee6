"""SHA of salt and password, once: ``sha256$SALT$DIGEST``, as many logins that were written at home have it.

These are weak: a thief of the database tries billions of passwords a second. They are accepted so that the owner of
such a login can leave it behind, and replaced at the next login like all others.
"""

import hashlib
import hmac
import re

from sso.core.password_hashes.model import PasswordHash, UnusableHash, decode_hex

_FORM = re.compile(r"(sha1|sha256|sha512)\$([^$]*)\$([0-9A-Fa-f]+)", re.ASCII)


def read_salted_sha(text: str) -> PasswordHash:
    match = _FORM.fullmatch(text)
    if match is None:
        raise UnusableHash("expected sha256$SALT$DIGEST with a hexadecimal digest")
    algorithm, salt, digest = match[1], match[2].encode(), decode_hex(match[3], "digest")
    if len(digest) != hashlib.new(algorithm).digest_size:
        raise UnusableHash(f"the digest must have the {hashlib.new(algorithm).digest_size} bytes of {algorithm}")

    def verify(password: bytes) -> bool:
        return hmac.compare_digest(hashlib.new(algorithm, salt + password).digest(), digest)

    return PasswordHash(text, f"salted-{algorithm}", verify)
