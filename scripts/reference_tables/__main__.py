"""Brings the tables of the documentation up to date with the source. Meanings are kept; new rows get a TODO."""

import sys

from scripts.reference_tables.page import TODO, problems, read_rows, tables, updated


def main() -> int:
    unfinished = 0
    for table in tables():
        page = table.page.read_text()
        if f".. list-table:: {table.title}\n" not in page:
            print(f"docs/{table.page.name}: {problems(page, table)[0]}", file=sys.stderr)
            unfinished += 1
            continue
        page, removed = updated(page, table)
        for row in removed:
            print(f"removed from {table.title}: {' | '.join(row)}")
        to_write = [row[0] for row in read_rows(page, table.title) if table.meanings and row[-1] == TODO]
        for name in to_write:
            print(f"{table.title}: {name} needs a meaning in place of {TODO}")
        unfinished += len(to_write)
        table.page.write_text(page)
    return 1 if unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
