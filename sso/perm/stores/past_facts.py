"""Loads the facts about a user at an application as they were at a past moment."""

from datetime import UTC, datetime

from sso.core.errors import NotFound
from sso.core.field_errors import FieldError, FieldPath
from sso.core.moments import rfc3339
from sso.core.net import Address
from sso.db.database import Database
from sso.db.transaction import Row
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.stores.compilation import CompiledApplications
from sso.perm.stores.facts_decoding import count_characters, decode_json, decode_row
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.perm.stores.past_applications import PastApplications
from sso.perm.stores.past_facts_sql import LATEST, PAST_FACTS


class PastFacts:
    def __init__(self, database: Database, applications: CompiledApplications) -> None:
        self._database = database
        self._applications = applications
        self._past_applications = PastApplications(database)

    async def load(
        self, user_id: str, application_id: int, address: Address | None, at: int, *, path: FieldPath, caller: str
    ) -> LoadedFacts:
        """Loads the facts as they were at the end of the second ``at``.

        ``caller``, such as ``user 1001``, uses one connection and compiles one application at a time. Raises
        FieldError, with the ``path`` of ``at``, for a moment in the future or before the beginning of the
        history, and NotFound if the application or the user did not exist, or the user has been erased.
        """
        loaded = await self._load(user_id, application_id, address, at, path, caller)
        if not loaded.user_exists:
            raise NotFound("the user did not exist at that time")
        return loaded

    async def load_application(self, application_id: int, at: int, *, path: FieldPath, caller: str) -> LoadedFacts:
        """Like `load`, without a user: the groups of the project have none of their users."""
        return await self._load("", application_id, None, at, path, caller)

    async def _load(
        self, user_id: str, application_id: int, address: Address | None, at: int, path: FieldPath, caller: str
    ) -> LoadedFacts:
        at = min(at, LATEST)
        with self._database.shares.limit_evaluation(caller):
            while True:
                row = await self._database.row(PAST_FACTS, user_id=user_id, application_id=application_id, at=at)
                assert row is not None
                _check(row, at, path)
                application = await self._load_application(row, application_id, at, caller)
                if application is not None:
                    break
        facts = await decode_row(self._database, row, user_id, address)
        settings, size = decode_json(row["app_settings"]), count_characters(row)
        return LoadedFacts(application, facts, row["known"], row["app_name"], settings, size)

    async def _load_application(
        self, row: Row, application_id: int, at: int, caller: str
    ) -> CompiledApplication | None:
        """Returns None if the row must be read again, because the application has just changed."""
        commit_id = row["application_commit"]
        if commit_id is not None:
            return await self._past_applications.load(application_id, commit_id, at, caller)
        present = await self._applications.load(application_id, row["revision"])
        return present if present.version == row["revision"] else None


def _check(row: Row, at: int, path: FieldPath) -> None:
    if at > row["now"]:
        raise FieldError(path, f"must not be in the future (the time is {row['now']})")
    if at < row["since"]:
        beginning = rfc3339(datetime.fromtimestamp(row["since"], UTC))
        raise FieldError(path, f"the history begins at {row['since']} ({beginning})")
    if row["n"] is None:
        raise NotFound("the application did not exist at that time")
