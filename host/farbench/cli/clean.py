"""`farbench clean`: show and empty the caches."""

from __future__ import annotations

import click

from farbench.caches import Cache, caches, size
from farbench.cli import options
from farbench.cli.output import Output
from farbench.errors import UsageError

COLUMNS = ("CACHE", "SIZE", "STATE", "HOLDS", "FOLDER")


@click.command("clean")
@click.argument("names", nargs=-1, metavar="[CACHE]...")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@options.json_option
def command(names: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Empty the caches, all or those named; everything in them is made again when needed."""
    out = Output(as_json)
    chosen = _chosen(names)
    rows: list[tuple[Cache, int]] = []
    for cache in chosen:
        rows.append((cache, cache.nbytes()))
        if not dry_run:
            cache.clear()
    state = "kept" if dry_run else "removed"
    out.result(
        {
            "removed": not dry_run,
            "caches": [
                {"name": cache.name, "path": str(cache.path), "nbytes": nbytes}
                for cache, nbytes in rows
            ],
        }
    )
    out.table(
        COLUMNS,
        [
            (cache.name, size(nbytes), state if nbytes else "empty", cache.holds, str(cache.path))
            for cache, nbytes in rows
        ],
    )


def _chosen(names: tuple[str, ...]) -> tuple[Cache, ...]:
    found = {cache.name: cache for cache in caches()}
    for name in names:
        if name not in found:
            raise UsageError(f"no cache {name!r}; there are: {', '.join(found)}")
    return tuple(found[name] for name in dict.fromkeys(names)) if names else tuple(found.values())
