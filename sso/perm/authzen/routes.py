"""The routes of AuthZEN, for callers with an access key, the access token of a service client, or a user JWT."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from quart import Blueprint, Response, g

from sso.change_stream.revision_headers import demanded_revision, revision_headers
from sso.core.errors import Forbidden
from sso.core.service_token import claimed_application
from sso.perm.accepted_credentials import EndpointRule, Subject
from sso.perm.authzen.endpoint import AuthzenEndpoint
from sso.perm.authzen.evaluations import EvaluationRequest, read_evaluation, read_evaluations
from sso.perm.authzen.search import actions_page, read_action_search, read_resource_search, read_subject_search
from sso.perm.caller import Caller, PresentedCredentials
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.wiring import Permissions
from sso.web.request import client_address, current_request, read_body, text_header
from sso.web.response import reply

METADATA = "/.well-known/authzen-configuration"
EVALUATION, EVALUATIONS = "/access/v1/evaluation", "/access/v1/evaluations"
SEARCH_SUBJECT, SEARCH_RESOURCE = "/access/v1/search/subject", "/access/v1/search/resource"
SEARCH_ACTION = "/access/v1/search/action"
_RULE = EndpointRule(Subject.USER_DATA, asks_questions=True, user_optional=True)
_REQUEST_ID = re.compile(r"[!-~]{1,128}", re.ASCII)


class AuthzenCall(NamedTuple):
    caller: Caller
    facts: FactsReader


def authzen_metadata(base_url: str) -> dict[str, str]:
    return {
        "policy_decision_point": base_url,
        "access_evaluation_endpoint": f"{base_url}{EVALUATION}",
        "access_evaluations_endpoint": f"{base_url}{EVALUATIONS}",
        "search_subject_endpoint": f"{base_url}{SEARCH_SUBJECT}",
        "search_resource_endpoint": f"{base_url}{SEARCH_RESOURCE}",
        "search_action_endpoint": f"{base_url}{SEARCH_ACTION}",
    }


def authzen_routes(perm: Permissions, base_url: str) -> Blueprint:
    routes = Blueprint("authzen", __name__)
    endpoint: AuthzenEndpoint = perm.endpoints.authzen

    @routes.get(METADATA)
    async def metadata() -> Response:
        return reply(authzen_metadata(base_url))

    async def answer(request: EvaluationRequest) -> Response:
        async def evaluate(call: AuthzenCall) -> dict[str, Any]:
            return await endpoint.evaluate(call.caller, request, call.facts)

        return await _run(perm, request, evaluate)

    @routes.post(EVALUATION)
    async def evaluation() -> Response:
        return await answer(read_evaluation(await _read_fields()))

    @routes.post(EVALUATIONS)
    async def evaluations() -> Response:
        return await answer(read_evaluations(await _read_fields()))

    @routes.post(SEARCH_ACTION)
    async def search_action() -> Response:
        search = read_action_search(await _read_fields())

        async def list_actions(call: AuthzenCall) -> dict[str, Any]:
            rules = await endpoint.list_actions(call.caller, search.evaluation, call.facts)
            return actions_page(rules, search.page)

        request = EvaluationRequest((search.evaluation,), None, is_single=True)
        return await _run(perm, request, list_actions)

    @routes.post(SEARCH_SUBJECT)
    async def search_subject() -> Response:
        search = read_subject_search(await _read_fields())

        async def list_subjects(call: AuthzenCall) -> dict[str, Any]:
            return await endpoint.list_subjects(call.caller, search, call.facts)

        return await _run(perm, search.request, list_subjects)

    @routes.post(SEARCH_RESOURCE)
    async def search_resource() -> Response:
        search = read_resource_search(await _read_fields())

        async def list_resources(call: AuthzenCall) -> dict[str, Any]:
            return await endpoint.list_resources(call.caller, search, call.facts)

        return await _run(perm, search.request, list_resources)

    return routes


async def _read_fields() -> dict[str, Any]:
    _repeat_request_id()
    return (await read_body(forms=False)).fields


async def _run(
    perm: Permissions, request: EvaluationRequest, handle: Callable[[AuthzenCall], Awaitable[dict[str, Any]]]
) -> Response:
    """Authenticates the caller of a request by the rules of ``check``, and replies."""
    fields = request.check_fields()
    credentials = _credentials()
    application_id = _RULE.application_of(fields, claimed_application(credentials.service_jwt))
    demanded, lookup = demanded_revision(), None
    if await perm.questions.can_read_ahead(demanded):
        lookup = await perm.read_ahead.begin(credentials, _RULE, application_id, fields)
    caller = await perm.callers.authenticate(credentials, _RULE, fields, lookup)
    facts = await perm.questions.open(lookup, demanded)
    try:
        with await perm.request_limit.enter("/check", fields, caller):
            body = await handle(AuthzenCall(caller, facts))
    except Forbidden as error:
        raise (perm.callers.needs_second_factor(error) if caller.second_factor_missing else error) from None
    return reply(body, headers=revision_headers(facts.revision, demanded))


def _credentials() -> PresentedCredentials:
    authorization = current_request().headers.get("Authorization", "")
    credentials = PresentedCredentials(client_address(), authorization, text_header("Factor"))
    if claimed_application(credentials.bearer):
        return credentials._replace(authorization="", service_jwt=credentials.bearer)
    return credentials


def _repeat_request_id() -> None:
    """The response has the id that the client gave to its request, in place of the service's own."""
    given = current_request().headers.get("X-Request-ID", "")
    if _REQUEST_ID.fullmatch(given):
        g.request_id = given
