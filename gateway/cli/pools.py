"""`penname pools build|show|verify`."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from gateway.bootstrap import load_embedding
from gateway.cli.console import print_json, progress
from privacy.pools.artefact import PoolSet
from privacy.pools.build import build_pools


def build(out: Path) -> None:
    with progress("pools") as report:
        build_pools(out, load_embedding(), report)
    Console().print(
        f"built version {PoolSet.load(out).version} in {out}", highlight=False, soft_wrap=True
    )


def show(as_json: bool) -> None:
    pools = PoolSet.load()
    rows = [
        {"type": t, "size": len(pools.pool(t)), "with_larger_lists": pools.pool(t).sizes[-1]}
        for t in pools.fine_types
    ]
    if as_json:
        print_json({"version": pools.version, "embedding": pools.embedding, "pools": rows})
        return
    table = Table("type", "size", "with larger lists", title=f"pools {pools.version}")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


def verify() -> None:
    pools = PoolSet.load()
    pools.check_embedding(load_embedding())
    Console().print(f"pools {pools.version}: every file matches its hash", highlight=False)
