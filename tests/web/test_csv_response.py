"""Cells of CSV files: no spreadsheet program finds a formula in them, whatever it takes for the separator."""

import csv
import io

import pytest

from sso.web.csv_response import csv_response


async def cell(value: object) -> str:
    text = str(await csv_response("x", ["a"], [{"a": value}]).get_data(as_text=True))
    return next(csv.reader(io.StringIO(text.partition("\r\n")[2])), [""])[0]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        ("x;=1+1", "x;'=1+1"),
        ("x,-1", "x,'-1"),
        ("x\t+1", "x\t'+1"),
        ("x\n=1", "x\n'=1"),
        ("x\r\n=1", "x\r\n'=1"),
        ('x; "=1+1"', 'x; "\'=1+1"'),
        ("x;=1;=2", "x;'=1;'=2"),
        ("  =1", "  '=1"),
        ("\t=1", "'\t'=1"),
        ("x;＝1", "x;'＝1"),
        ("a=b; c@d.example, e-f", "a=b; c@d.example, e-f"),
        ("plain", "plain"),
    ],
)
async def test_formula_is_neutralised_after_every_separator(text: str, written: str) -> None:
    assert await cell(text) == written


async def test_items_of_a_list_and_other_values() -> None:
    assert await cell(["x;=1", 2]) == "x;'=1 2"
    assert [await cell(value) for value in (None, True, -1)] == ["", "yes", "'-1"]
