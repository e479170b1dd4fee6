"""/api/admin/users/{user_id}/merge, unmerge and links: users who are one player, and how they sign in."""

from typing import Annotated

from pydantic import AfterValidator, Field

from sso.admin.answers.permissions import IMPACT
from sso.admin.answers.shape import NO_DATA, NO_DATA_ANSWER, AnswerShape
from sso.admin.answers.users import MergeMovesJson, RecentMergeJson, UnmergedJson, UserLinkJson
from sso.admin.caller import AdminCaller
from sso.admin.protected_users import ProtectedUsers
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    ListQuery,
    WriteQuery,
    record_response,
    slice_response,
)
from sso.admin.rights import AdminRight
from sso.admin.users import UserResource
from sso.core.errors import Forbidden, NotFound
from sso.core.moments import rfc3339
from sso.core.records import check_user_id
from sso.db.transaction import Transaction
from sso.perm.changes.writer import WriteMode
from sso.players.links import UserLinks
from sso.players.merge import CheckMoves, Moves, UserMerges

UserId = Annotated[str, AfterValidator(check_user_id)]


class MergeRequest(AdminModel):
    into: UserId  # the user who gets everything, and stays


class UnmergeRequest(AdminModel):
    from_id: UserId = Field(alias="from")  # the user who was merged


class UserLinkResource:
    def __init__(self, users: UserResource, merges: UserMerges, links: UserLinks, protected: ProtectedUsers) -> None:
        self._users = users
        self._merges = merges
        self._links = links
        self._protected = protected

    async def merge(self, request: AdminRequest) -> AdminResponse:
        """Merges a user into another one, who gets the keys, store accounts, roles, memberships, groups, data of games,
        tags and purchases that it does not have.

        The merged user is disabled, and its id stays as an alias. The merge can be undone for 7 days. Two users with
        administrative rights cannot be merged, and a caller needs the rights to give what moves.
        """
        user, into = await self._users.require_manageable(request), request.body.into
        mode = WriteMode(request.query.dry_run, override=True, actor=request.caller.actor)
        check = self._delegation(request.caller, user.user_id, into)
        written = await self._merges.merge(mode, user.user_id, into, check)
        result = written.result
        if not request.query.dry_run:
            return AdminResponse({"moves": result.moves, "warnings": list(result.warnings)})
        impact = written.impact.json()
        return AdminResponse({**impact, "moves": result.moves, "warnings": [*result.warnings, *impact["warnings"]]})

    async def unmerge(self, request: AdminRequest) -> AdminResponse:
        """Undoes a merge within 7 days. ``changed`` lists what was changed since, which stays as it is."""
        into = await self._users.require_manageable(request)
        mode = WriteMode(actor=request.caller.actor, override=True)
        check = self._delegation(request.caller, into.user_id, request.body.from_id)
        changed = await self._merges.unmerge(mode, into.user_id, request.body.from_id, check)
        return record_response({"changed": changed})

    async def merges(self, request: AdminRequest) -> AdminResponse:
        """Lists the users who were merged into this one within the last 7 days, so that it can be undone."""
        user = await self._users.require(request.path["user_id"])
        merges = [{"from": name, "at": rfc3339(at)} for name, at in await self._merges.recent(user.user_id)]
        return slice_response(merges, request.query, lambda merge: str(merge["from"]))

    async def links(self, request: AdminRequest) -> AdminResponse:
        """Lists the keys of devices and the accounts at stores and other providers with which the user signs in."""
        user = await self._users.require(request.path["user_id"])
        links = [
            {
                "id": link.id,
                "kind": link.kind,
                "name": link.name,
                "created": rfc3339(link.created),
                "last_used": rfc3339(link.last_used),
            }
            for link in await self._links.list(user.user_id)
        ]
        return slice_response(links, request.query, lambda link: str(link["id"]))

    async def remove(self, request: AdminRequest) -> AdminResponse:
        """Removes a key or a store account, unless the user could not sign in any more."""
        user = await self._users.require_manageable(request)
        if not await self._links.remove(user, request.path["link_id"], request.caller.actor):
            raise NotFound("there is no such link")
        return AdminResponse()

    def _delegation(self, caller: AdminCaller, *user_ids: str) -> CheckMoves:
        """Returns the check that the caller could give what moves, and may manage both users before and after."""

        async def check(tx: Transaction, moves: Moves) -> None:
            for user_id in user_ids:
                await self._protected.require_manageable(caller, user_id, tx)
            if caller.is_root:
                return
            if moves["memberships"]:
                raise Forbidden("the role root is required to merge a user with roles in projects")
            if moves["assignments"] or moves["games"]:
                caller.require(AdminRight.MANAGE_APPLICATIONS)
            if moves["groups"]:
                caller.require(AdminRight.MANAGE_PROJECTS)

        return check

    def routes(self) -> tuple[AdminRoute, ...]:
        view, manage, user = AdminRight.VIEW_USERS, AdminRight.MANAGE_USERS, "/users/<user_id>"
        merged = AnswerShape(NO_DATA, {**IMPACT, "moves": MergeMovesJson})
        return (
            AdminRoute(
                "POST",
                f"{user}/merge",
                manage,
                self.merge,
                WriteQuery,
                MergeRequest,
                answer=merged,
                summary="Merge a user into another one",
                example={"into": "1001"},
            ),
            AdminRoute(
                "POST",
                f"{user}/unmerge",
                manage,
                self.unmerge,
                body=UnmergeRequest,
                answer=AnswerShape(UnmergedJson),
                summary="Undo a merge of users",
                example={"from": "1002"},
            ),
            AdminRoute("GET", f"{user}/merges", view, self.merges, ListQuery, answer=AnswerShape(RecentMergeJson)),
            AdminRoute("GET", f"{user}/links", view, self.links, ListQuery, answer=AnswerShape(UserLinkJson)),
            AdminRoute(
                "DELETE",
                f"{user}/links/<link_id>",
                manage,
                self.remove,
                answer=NO_DATA_ANSWER,
                summary="Remove a way to sign in",
            ),
        )
