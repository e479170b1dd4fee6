"""Names that clients give themselves. Pages show them to users, so they must not look like something else. Pure."""

import unicodedata
from collections.abc import Iterable

MAX_NAME = 64
MAX_MARKS = 2  # in a row: more of them reach into other lines
MIN_CONTAINED = 4  # shorter names of ours are part of too many words
# Letters of other scripts, and digits, that look like Latin letters.
_LOOKALIKES = str.maketrans(
    "аеорсухкіјѕԁһԛԝӏвмнтгпαενορτυχκιβγωμη0135$@|!",
    "aeopcyxkijsdhqwlbmhtrnaevoptuxkibywunolessali",
)
_MIXED_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


def check_name(text: str) -> str:
    """Returns the name in one normal form. Raises ValueError."""
    name = " ".join(unicodedata.normalize("NFKC", text).split())
    if len(name) > MAX_NAME or not any(one.isalnum() for one in name):
        raise ValueError(f"must have at most {MAX_NAME} characters, and a letter or digit among them")
    # Controls, bidirectional and invisible characters, private use and surrogates.
    if any(unicodedata.category(one)[0] in "CZ" and one != " " for one in name):
        raise ValueError("must not contain control characters or invisible ones")
    marks = 0
    for one in name:
        marks = marks + 1 if unicodedata.category(one)[0] == "M" else 0
        if marks > MAX_MARKS:
            raise ValueError(f"must not contain more than {MAX_MARKS} combining marks in a row")
    if any(_has_mixed_scripts(word) for word in name.split()):
        raise ValueError("must not mix letters of several scripts in a word")
    return name


def imitates(name: str, service_names: Iterable[str], client_names: Iterable[str]) -> bool:
    """Returns whether the name looks like that of another client, or contains one of this service."""
    skeleton = _skeleton(name)
    if any(skeleton == _skeleton(other) for other in client_names):
        return True
    own = (_skeleton(other) for other in service_names)
    return any(other == skeleton or (len(other) >= MIN_CONTAINED and other in skeleton) for other in own if other)


def _skeleton(text: str) -> str:
    """Returns what is left of a name for the eye: letters without marks and spaces, lookalikes as Latin letters."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()).translate(_LOOKALIKES)
    plain = "".join(one for one in folded if unicodedata.category(one)[0] in "LN")
    return plain.replace("rn", "m").replace("vv", "w").replace("l", "i")


def _has_mixed_scripts(word: str) -> bool:
    scripts = {unicodedata.name(one, "").partition(" ")[0] for one in word if one.isalpha()}
    return len(scripts.intersection(_MIXED_SCRIPTS)) > 1
