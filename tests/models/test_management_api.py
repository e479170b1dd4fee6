"""The management API: what was stored is read back, a stale version changes nothing, and what was deleted is gone."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, initialize, multiple, precondition, rule

from tests.kit.server import Server
from tests.models.machine import ServiceMachine, administrator, check_model

MAX_RECORDS = 8  # so that a sequence uses the same record often
TEXTS = ("Harbor", "Süß 夜", "x" * 60)
URIS: tuple[list[str], ...] = (
    [],
    ["https://shop.example.com/cb"],
    ["https://shop.example.com/cb", "http://127.0.0.1:5000/cb"],
)


@dataclass(frozen=True)
class Kind:
    """A kind of record: its id, the fields that its creation needs, and values of the fields that change."""

    key: str
    needed: dict[str, str]
    changes: tuple[tuple[str, tuple[Any, ...]], ...]

    def change(self, choice: int) -> tuple[str, Any]:
        pairs = [(name, value) for name, values in self.changes for value in values]
        return pairs[choice % len(pairs)]


KINDS = {
    "clients": Kind("client_id", {"client_id": "model-{}"}, (("name", TEXTS), ("redirect_uris", URIS))),
    "projects": Kind("id", {"title": "Model {}"}, (("description", TEXTS),)),
    "webhooks": Kind("id", {"url": "http://127.0.0.1:9/{}", "secret": "s" * 32}, (("disabled", (True, False)),)),
    "applications": Kind("application_id", {"name": "Model {}"}, (("description", TEXTS),)),
}
_numbers = itertools.count(1)


@dataclass
class Record:
    kind: Kind
    path: str
    fields: dict[str, Any]
    etags: list[str] = field(default_factory=list)
    is_deleted: bool = False


class ManagementApi(ServiceMachine):
    records = Bundle("records")

    def __init__(self) -> None:
        super().__init__()
        self.http = self.server.client(headers=administrator(self.server))
        self.http.base_url = httpx.URL(f"{self.server.base_url}/api/admin")
        self.all: list[Record] = []

    @initialize(target=records)
    def create_all(self) -> MultipleResults[Record]:
        return multiple(*map(self._create, KINDS))

    @precondition(lambda self: len(self.all) < MAX_RECORDS)
    @rule(target=records, kind=st.sampled_from(list(KINDS)))
    def create(self, kind: str) -> Record:
        return self._create(kind)

    def _create(self, kind: str) -> Record:
        number = next(_numbers)
        body = {name: value.format(number) for name, value in KINDS[kind].needed.items()}
        answer = self.http.post(f"/{kind}", json=body)
        assert answer.status_code == 201, answer.text
        stored = answer.json()["data"]
        record = Record(KINDS[kind], f"/{kind}/{stored[KINDS[kind].key]}", stored)
        self.all.append(record)
        self.read(record)
        return record

    @rule(record=records, choice=st.integers(0, 5), age=st.none() | st.integers(0, 2))
    def change(self, record: Record, choice: int, age: int | None) -> None:
        """Changes one field, if the version that the caller knows is the present one, or if there is none."""
        name, value = record.kind.change(choice)
        known = None if age is None else record.etags[max(len(record.etags) - 1 - age, 0)]
        answer = self.http.patch(record.path, json={name: value}, headers={"If-Match": known} if known else {})
        if record.is_deleted:
            assert answer.status_code in (404, 403), answer.text
        elif known not in (None, record.etags[-1]):
            assert answer.status_code == 412, answer.text
        else:
            assert answer.status_code == 200, answer.text
            record.fields[name] = value
        self.read(record)

    @rule(record=records)
    def change_with_wrong_field(self, record: Record) -> None:
        answer = self.http.patch(record.path, json={"no_such_field": 1})
        assert answer.status_code == 400, answer.text
        self.read(record)

    @rule(record=records)
    def delete(self, record: Record) -> None:
        answer = self.http.delete(record.path)
        assert answer.status_code in ((403, 404, 200) if record.is_deleted else (200,)), answer.text
        record.is_deleted = True
        self.read(record)

    @rule(record=records)
    def read(self, record: Record) -> None:
        answer = self.http.get(record.path)
        if record.is_deleted:  # some kinds are kept as removed
            assert answer.status_code == 404 or answer.json()["data"]["removed"], answer.text
            return
        found = answer.json()["data"]
        assert all(found[name] == record.fields[name] for name, _ in record.kind.changes), (found, record)
        if not record.etags or record.etags[-1] != answer.headers["ETag"]:
            record.etags.append(answer.headers["ETag"])

    def teardown(self) -> None:
        """Deletes what is left, because the service limits how many records of a kind there are."""
        for record in self.all:
            self.read(record)
            if not record.is_deleted:
                self.delete(record)
        self.http.close()


def test_management_api(server: Server) -> None:
    check_model(ManagementApi, server)
