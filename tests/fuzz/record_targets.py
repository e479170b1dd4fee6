"""Parsers of records: conditions, rules, schemas, documents of desired state, and backups."""

import io
import tarfile
from typing import Any, NoReturn

import orjson

from sso.backup import BackupError
from sso.backup.archive_reader import ArchiveReader
from sso.backup.chunk_encryption import DamagedStream, decrypt_stream
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.perm.engine.conditions import count_nodes, holds, required_attributes
from sso.perm.engine.decode import decode_condition
from sso.perm.engine.user_facts import UserFacts
from sso.perm.input.condition_notation import condition_text, parse_condition
from sso.perm.input.conditions import check_condition
from sso.perm.input.roles import read_role
from sso.perm.input.rule_notation import add_rules, rule_texts
from sso.perm.input.schema import read_own_data, read_schema, read_schema_roles
from sso.state.document import parse
from sso.web.body import MAX_BYTES, parse_body
from tests.fuzz.target import Target, promise

USER = UserFacts(user_id="u1", tags=frozenset({"beta"}))
SCHEMA_VALUES = 65_536


def condition(data: bytes) -> None:
    """As JSON, or as a short text; both must mean the same."""
    if data.startswith(b"{"):
        value: dict[str, Any] = parse_body(data, None).fields
        check_condition(value)
    else:
        value = parse_condition([line for line in data.decode("latin1").split("\n") if line], ("condition",))
        check_condition(value)
    decoded = decode_condition(value)
    holds(decoded, USER, 1_700_000_000)
    required_attributes(decoded)
    promise(count_nodes(decoded) >= 1, "a condition has no nodes")
    text = condition_text(value)
    again = parse_condition([text] if text.startswith("{") else text.split(" ") if text else [], ("condition",))
    promise(again == value, "a condition is read differently when it is written")


def schema(data: bytes) -> None:
    """A schema, a role and the data of a user: trees of rules."""
    fields = parse_body(data, None, max_values=SCHEMA_VALUES).fields
    for read in (read_schema_roles, read_own_data, read_role):
        try:
            orjson.dumps(read(dict(fields)))
        except FieldError:
            continue
    sections, _warnings = read_schema(fields)
    promise(read_schema(sections)[0] == sections, "a schema changes when it is saved again")


def rules(data: bytes) -> None:
    """Rules as short texts, one per line."""
    texts = [line for line in data.decode("utf-8", "replace").split("\n") if line]
    meta = add_rules({}, texts)
    role, _warnings = read_role({"name": "role", "meta": meta})
    orjson.dumps(role)
    promise(add_rules({}, rule_texts(meta)) == meta, "rules are read differently when they are written")


def state_document(data: bytes) -> None:
    document = parse(parse_body(data, None, max_values=SCHEMA_VALUES).fields)
    promise(document.record_count >= 0 and len(document.application_ids) >= 0, "records cannot be counted")


def _no_passphrase() -> NoReturn:
    raise BackupError("there is no passphrase")


def backup(data: bytes) -> None:
    """The archive, which strangers may have changed; after a zero byte, an encrypted stream."""
    if data.startswith(b"\0"):
        for _piece in decrypt_stream(bytes(32), [data[1:]]):
            promise(False, "a stream is accepted that was not encrypted")
        return
    reader = ArchiveReader(io.BytesIO(data), _no_passphrase, lambda _done, _total: None, unauthenticated=True)
    promise(sum(map(len, reader.dump(lambda _done, _total: None))) == reader.dump_bytes, "the dump has another size")


_CONDITION_WORDS = (
    b'"domain":"a.example"',
    b'"uid":["u1"]',
    b'"tag":"beta"',
    b'"ip":"10.0.0.0/8"',
    b'"everyone":true',
    b'"and":[{',
    b'"or":[{',
    b"}]",
    b"uid=u1,u2",
    b"tag=",
    b"everyone=true",
    b"\n",
    b'{"and":[' * 20,
    b"ip=::/0",
    b'"purchase":"x"',
)
_RULE_WORDS = (
    b"public_data.",
    b"=",
    b"|eu",
    b"=1e400",
    b"=null",
    b'="',
    b"private_data",
    b".value",
    b"\n",
    b"=9999999999999999999",
    b".",
)
_SCHEMA_WORDS = (
    b'"private_data":{',
    b'"public_data":{',
    b'"value":true',
    b'"params":"a,b"',
    b'"roles":{',
    b'"protected":true',
    b'"secret_data":{',
    b'"meta":{',
    b'"condition":{',
    b'"expired":1',
    b'"name":"r"',
    b"}}",
    b'{"a":' * 30,
    b'"value":{}',
)
_DOCUMENT_WORDS = (
    *_SCHEMA_WORDS,
    b'"users":[{',
    b'"clients":[{',
    b'"groups":[{',
    b'"memberships":[{',
    b'"projects":[{',
    b'"id":1',
    b'"access_keys":[{',
    b'"login":"a@example.com"',
    b'"client_id":"c"',
    b'"redirect_hosts":["h"]',
    b'"identity_providers":[{',
    b'"applications":[{',
    b'"permissions":[{',
    b'"application_id":1',
    b'"user_id":"u"',
    b'"title":"t"',
    b'"schemas":{"1":{',
)

TARGETS = (
    Target(condition, (ApiError,), _CONDITION_WORDS, MAX_BYTES),
    Target(schema, (ApiError,), _SCHEMA_WORDS, 4 * MAX_BYTES),
    Target(rules, (ApiError, ValueError), _RULE_WORDS),
    Target(state_document, (ApiError,), _DOCUMENT_WORDS, 4 * MAX_BYTES),
    Target(
        backup,
        (BackupError, DamagedStream, tarfile.HeaderError),
        (b"manifest.json", b"ustar  \0", b"0" * 11 + b"\0"),
        64 * 1024,
    ),
)
