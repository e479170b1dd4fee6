"""Hashes that Django, passlib, Werkzeug, Firebase and others have made are verified; expensive ones are refused."""

import hashlib

import bcrypt
import pytest
from werkzeug.security import generate_password_hash

from sso.core.password_hashes.model import UnusableHash
from sso.core.password_hashes.reading import FORMS, read_password_hash
from sso.core.passwords import Hasher

PASSWORD = "correct horse é"
# Made with this password by Django 5 and passlib 1.7.
MADE_ELSEWHERE = (
    "pbkdf2_sha256$1000$TivjSfHUFtrLQlRAu2Zrru$VBzvtkjve7GOXVY4lF4A5BjHSWPz7qCaP+ceQh8uK/E=",
    "pbkdf2_sha1$1000$FQfi1VXpqi2Dn7ZYIf2WbK$aGQUq2uqp9V3XG4w2budaMVzvO8=",
    "argon2$argon2id$v=19$m=64,t=1,p=8$U3hlbjE4UVo1UVFtMFBZSWFqRHQzUw$RypQX0scuUBz0Fr523M6HQvqV8lF63ogSXmRQFSvhQw",
    "bcrypt_sha256$$2b$04$FhjR8jUzK..W2bYGHCRmee8Zh9QyD/n8IYB2UG.ySXm9vJc0ISW26",
    "bcrypt$$2b$04$mdctS1WnqpvkhO9.5twGcOVap7ziW2Vnhyeit65I/KeUvrEAIy7YG",
    "$2a$04$mdctS1WnqpvkhO9.5twGcOVap7ziW2Vnhyeit65I/KeUvrEAIy7YG",
    "$2y$04$mdctS1WnqpvkhO9.5twGcOVap7ziW2Vnhyeit65I/KeUvrEAIy7YG",
    "scrypt$16$urTnEnkgGtmWErP5g69rGi$8$5$RCMMJAOSRXApoX4EOk+oHpGG2AJ9HLmZYTMw1kYurl8lug/8KOl/5F1hZD2J9D+6JUJq47qpJpyV"
    "nOqoT2JJKw==",
    "$pbkdf2$1000$em.NcU7pnVNqbY0xBmBsjQ$rEu60rkE5BKsQVUB2MYBLiVJitU",
    "$pbkdf2-sha256$1000$D.E8R0gppdT633tPibHW.g$i1OZxBNa3/Xs2ho3puvzX13yqt4GsiV0lcdQ7yXz7SI",
    "$pbkdf2-sha512$1000$975XCmEs5dx7r3XOmZNybg$9MfmAEPWveDPaeYUxW1Pz85f5QXImgr.vrShfYn0aa19NIUfOQ9EMmoqQwX46S9mSGqnrM.g"
    "Irku3Ro4T5XYwQ",
    "$scrypt$ln=4,r=8,p=1$hDDGeO9day3FmFMKoXSuNQ$mrBX4rpRyzVwZxVRB0q41xYKyX0MfeOfFegbrybKYrk",
    "$argon2i$v=19$m=64,t=2,p=4$Uco5x5jTmtM6B+BcS4mRsg$JbA9PBMZ9ifBq/vBp7ZCSN+oLTN91heujcRIJraRDoE",
    "$argon2d$v=19$m=64,t=2,p=4$dY7RmnOutRYCwNgbg/CeUw$GzpFHlbsfr+fCJnDv9/ZQvSRnTOP7/cLquAvYcLeuSw",
    generate_password_hash(PASSWORD, "pbkdf2:sha256:1000"),
    generate_password_hash(PASSWORD, "scrypt:1024:8:1"),
    *(
        f"{name}$salt${hashlib.new(name, b'salt' + PASSWORD.encode()).hexdigest()}"
        for name in ("sha1", "sha256", "sha512")
    ),
)
# The example of Firebase's documentation, for the password user1password.
FIREBASE = (
    "$firebase-scrypt$m=14,r=8$jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA"
    "==$Bw==$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="
)
SALT_AND_DIGEST = "c2FsdHNhbHQ$MDEyMzQ1Njc4OWFiY2RlZg"


async def test_only_the_password_of_an_imported_hash_matches_and_it_is_replaced() -> None:
    hasher = Hasher(1, 8)
    for text, password in (*((text, PASSWORD) for text in MADE_ELSEWHERE), (FIREBASE, "user1password")):
        stored = read_password_hash(text).text
        assert await hasher.matches(stored, password), text
        for wrong in (password + "x", password.upper(), "", "\ud800", "x" * 2000):
            assert not await hasher.matches(stored, wrong), text
        assert hasher.needs_rehash(stored), text
    tested = {beginning for beginning in FORMS for text in (*MADE_ELSEWHERE, FIREBASE) if text.startswith(beginning)}
    assert tested == FORMS.keys() - {"$2b$"}  # the form of Django contains it


async def test_bcrypt_compares_the_first_72_bytes() -> None:
    text = bcrypt.hashpw(b"a" * 72, b"$2b$04$mdctS1WnqpvkhO9.5twGcO").decode()
    assert await Hasher(1, 8).matches(text, "a" * 80)
    assert not await Hasher(1, 8).matches(text, "a" * 71)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "unknown form"),
        ("md5$salt$0123", "unknown form"),
        ("secret", "unknown form"),
        ("x" * 2000, "at most 1024"),
        ("sha256$a\nb$00", "printable"),
        ("$2b$15$mdctS1WnqpvkhO9.5twGcOVap7ziW2Vnhyeit65I/KeUvrEAIy7YG", "from 4 to 14"),
        ("$2b$31$mdctS1WnqpvkhO9.5twGcOVap7ziW2Vnhyeit65I/KeUvrEAIy7YG", "from 4 to 14"),
        ("$2b$10$short", "53 characters"),
        ("$2b$04$" + "z" * 53, "one of . O e u"),
        ("bcrypt_sha256$$2b$04$" + "z" * 53, "one of . O e u"),
        (f"$pbkdf2-sha512$1500001${SALT_AND_DIGEST}", "from 1 to 1,500,000"),
        (f"pbkdf2_sha256$2000001${SALT_AND_DIGEST}", "from 1 to 2,000,000"),
        # Two blocks of SHA-256 cost twice as much.
        (f"$pbkdf2-sha256$1000001$c2FsdA${'QUFB' * 16}", "from 1 to 1,000,000"),
        (f"$pbkdf2-sha256$0${SALT_AND_DIGEST}", "from 1 to"),
        ("$pbkdf2-sha256$1000$c2FsdA$QUFB", "at least 16 bytes"),
        ("$pbkdf2-sha256$1000$c2FsdA$!!", "base64"),
        (f"$scrypt$ln=18,r=8,p=1${SALT_AND_DIGEST}", "128 MiB"),
        (f"$scrypt$ln=17,r=8,p=4${SALT_AND_DIGEST}", "384 MiB"),
        (f"$scrypt$ln=99,r=8,p=1${SALT_AND_DIGEST}", "from 1 to 20"),
        (f"$scrypt$ln=1,r=8,p=196608${SALT_AND_DIGEST}", "from 1 to 16"),
        (f"$scrypt$ln=1,r=65,p=1${SALT_AND_DIGEST}", "from 1 to 64"),
        (f"$scrypt$ln=1,r=8,p=1$c2FsdA${'QUFB' * 22}", "from 16 to 64 bytes"),
        (f"$scrypt$ln=16,r=1,p=1${SALT_AND_DIGEST}", "less than 2 to the power"),
        (f"scrypt:1024:8:1$salt${'00' * 65}", "from 16 to 64 bytes"),
        ("scrypt$1000$salt$8$1$MDEyMzQ1Njc4OWFiY2RlZg", "power of two"),
        (FIREBASE.replace("m=14", "m=19"), "128 MiB"),
        (FIREBASE.replace("lSrfV15cpx95", ""), "as many bytes as the digest"),
        (f"$argon2id$v=19$m=131073,t=1,p=1${SALT_AND_DIGEST}", "131,072"),
        (f"$argon2id$v=19$m=131072,t=9,p=1${SALT_AND_DIGEST}", "m * t"),
        (f"$argon2id$v=19$m=64,t=1,p=17${SALT_AND_DIGEST}", "from 1 to 16"),
        (f"$argon2id$v=19$m=128,t=65,p=16${SALT_AND_DIGEST}", "from 1 to 64"),
        (f"$argon2i$m=16,t=65536,p=2${SALT_AND_DIGEST}", "from 1 to 64"),
        (f"$argon2id$v=19$m=127,t=1,p=16${SALT_AND_DIGEST}", "8 times its parallelism"),
        ("$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$QUFB", "at least 16 bytes"),
        (f"$argon2x$v=19$m=64,t=1,p=1${SALT_AND_DIGEST}", "expected Argon2"),
        ("sha256$salt$00112233445566778899aabbccddeeff", "32 bytes"),
    ],
)
def test_hash_that_is_not_valid_or_too_expensive_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UnusableHash, match=problem.replace("*", r"\*")) as refused:
        read_password_hash(text)
    for part in text.split("$"):  # the text of the error is shown in reports
        assert len(part) < 12 or part not in str(refused.value)
