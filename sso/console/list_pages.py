"""Pages with a list of the management API: a table with filters and pages, and the same records as a CSV file."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace
from quart import Blueprint, Response, request

from sso.console.form_error import FormError
from sso.console.listing import FilterChoice, Listing
from sso.console.lists import exported_pages
from sso.console.sections import ConsoleSection
from sso.console.view import ConsoleView, add_page
from sso.console.visit import ConsoleVisit, variables_of
from sso.core.errors import ApiError
from sso.web.csv_response import streamed_csv_response

Record: TypeAlias = dict[str, Any]
Variables: TypeAlias = dict[str, Any]  # in the path


# Returns values for the template of a page: title, crumbs and more.
PageValues: TypeAlias = "Callable[[ConsoleVisit, Variables], Awaitable[Record]]"


class ShowList(Protocol):
    """Shows the list again, with more values for its template."""

    async def __call__(self, visit: ConsoleVisit, variables: Variables, /, **context: Any) -> Response: ...


async def no_values(_visit: ConsoleVisit, _variables: Variables) -> Record:
    return {}


async def _filters_as_query(
    _visit: ConsoleVisit, filters: Mapping[str, str], _variables: Variables
) -> Mapping[str, str]:
    return filters


class ListPage(Struct, frozen=True):
    section: ConsoleSection
    records: str  # the path of the list in the management API
    name: str  # what the template calls the records
    template: str
    columns: Sequence[str] = ()  # in the CSV file; without any there is none
    filters: Sequence[str] = ("search",)
    path: str = ""  # below that of the section
    export: str = "/export.csv"  # its path below that of the section
    file: str = ""  # the name of the CSV file; "" for that of the list in the management API
    page: PageValues = no_values
    query: Callable[[ConsoleVisit, Mapping[str, str], Variables], Awaitable[Mapping[str, str]]] = _filters_as_query
    row: Callable[[ConsoleVisit, Record], Record] = lambda _visit, record: record  # as the table shows it
    # The ids of the records whose names the table shows, by kind: the template has their ``names``.
    named: Callable[[Sequence[Record]], Mapping[str, Iterable[object]]] = lambda _records: {}
    cells: Callable[[Record], Record] = lambda record: record  # as the CSV file shows it
    opens: bool = True  # otherwise another function shows the page
    needs_right: bool = True  # otherwise the list is empty for users without the right
    choices: Sequence[FilterChoice] = ()  # further filters; ``page`` may return others for those of ``filters``
    default_sort: str = ""  # with it, the list can be sorted by columns
    shows_problems: bool = False  # a filter that is refused is shown on the page, which has no records then


def add_list(console: ConsoleView, routes: Blueprint, page: ListPage) -> ShowList:
    """Adds the page and its CSV file. Returns the function that shows the page, for forms on it."""

    def read_listing(variables: Variables) -> Listing:
        names = dict.fromkeys((*page.filters, *(choice.name for choice in page.choices)))
        filters = {name: request.args.get(name, "").strip() for name in names}
        return Listing(
            _path_of(page, page.path, variables),
            filters,
            page.choices,
            request.args.get("sort", "") if page.default_sort else "",
            page.default_sort,
            request.args.get("order", "asc") if page.default_sort else "asc",
            request.args.get("after", ""),
            export=_path_of(page, page.export, variables) if page.columns else "",
        )

    async def read_query(visit: ConsoleVisit, listing: Listing, variables: Variables) -> dict[str, str]:
        order = {"sort": listing.shown_sort, "order": listing.order} if page.default_sort else {}
        return {**await page.query(visit, listing.filters, variables), **order}

    async def show(visit: ConsoleVisit, variables: Variables, /, **context: Any) -> Response:
        listing = read_listing(variables)
        filters, after = listing.filters, listing.after
        values: Record = {"title": page.section.title, **await page.page(visit, variables)}
        records, next_after = [], None
        try:
            if page.needs_right or visit.may("GET", page.records):
                query = {**await read_query(visit, listing, variables), "after": after}
                found = await visit.call("GET", page.records, query=query, **variables_of(page.records, variables))
                records, next_after = found.members["data"], found.members.get("next")
        except ApiError as error:
            if not page.shows_problems:
                raise
            values |= while_typing(FormError.of(error)).values
        rows = [page.row(visit, record) for record in records]
        values |= {page.name: rows, "next": next_after, "after": after, "names": await visit.names(page.named(rows))}
        listing = replace(listing, next=next_after, choices=values.pop("choices", page.choices))
        values |= {"filters": filters, "query": listing.query, "listing": listing}
        return await console.show(visit, page.template, **{**values, **context})

    async def open_list(**variables: str) -> Response:
        return await show(await console.open(page.section), variables)

    async def export(**variables: str) -> Response:
        visit = await console.open_export(page.section)
        query = await read_query(visit, read_listing(variables), variables)
        pages = exported_pages(visit, page.records, query, **variables_of(page.records, variables))
        return await streamed_csv_response(page.file or page.records.strip("/"), page.columns, pages, page.cells)

    if page.opens:
        add_page(routes, "GET", page.path, open_list)
    if page.columns:
        add_page(routes, "GET", page.export, export)
    return show


def _path_of(page: ListPage, path: str, variables: Variables) -> str:
    """Returns the path of a page of the list, with the values of its variables."""
    for name, value in variables.items():
        path = path.replace(f"<{name}>", quote(str(value), safe=""))
    return page.section.path + path


def while_typing(error: FormError) -> FormError:
    """While a text is typed it is mostly incomplete, which is no error then: htmx would not show the page of one."""
    is_htmx = bool(request.headers.get("HX-Request"))
    return replace(error, status=200) if is_htmx and error.status in (404, 422) else error
