"""`penname`: one function a command, thin; the work is done elsewhere."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.ppft import app as ppft_app

app = typer.Typer(
    name="penname",
    help="A RAG privacy gateway: names travel under a pen name.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
keys_app = typer.Typer(help="API keys.", no_args_is_help=True)
policy_app = typer.Typer(help="Policies: check, show, try.", no_args_is_help=True)
pools_app = typer.Typer(help="Public name pools.", no_args_is_help=True)
finetune_app = typer.Typer(
    help="Private fine-tuning: jobs, their progress and their results.", no_args_is_help=True
)
app.add_typer(keys_app, name="keys")
app.add_typer(policy_app, name="policy")
app.add_typer(pools_app, name="pools")
app.add_typer(finetune_app, name="finetune")
app.add_typer(ppft_app, name="ppft")

DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Data folder; default: PENNAME_DATA_DIR.")
]
PolicyName = Annotated[str, typer.Option("--policy", help="A shipped policy's name or a file.")]
Tenant = Annotated[
    str, typer.Option("--tenant", help="Whose data it is: letters, digits, dots, dashes, _.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _settings(**overrides: Any) -> Any:
    from gateway.cli.console import load_settings

    return load_settings(**overrides)


def _version(wanted: bool) -> None:
    if wanted:
        from gateway.cli.console import print_version

        print_version()
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """A RAG privacy gateway: names travel under a pen name."""


@app.command()
def setup() -> None:
    """Prepare the models in the cache: verify weights, convert vectors, export the encoder."""
    from gateway.cli.setup import run

    run()


@app.command()
def serve(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="YAML file: model_list, policy, retrieval; default: PENNAME_CONFIG."
        ),
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to bind.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port to bind; 0 picks one.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Run the gateway."""
    from gateway.cli.serve import run

    run(_settings(config=config, host=host, port=port, data_dir=data_dir))


@app.command()
def demo(
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the conversation as JSON to this file.")
    ] = None,
    data_dir: Annotated[
        Path, typer.Option("--data-dir", help="Where the demo keeps its documents.")
    ] = Path(".penname/demo"),
    policy: PolicyName = "balanced",
) -> None:
    """Ingest the sample documents and hold a three-turn conversation about them."""
    from gateway.cli.demo import run

    run(json_file, data_dir, policy)


@app.command()
def ingest(
    files: Annotated[list[Path], typer.Argument(help="Text, Markdown, HTML, PDF or .eml files.")],
    store: Annotated[str, typer.Option("--store", help="Name of the vector store.")] = "documents",
    tenant: Tenant = "default",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Add documents to a vector store; prints its id."""
    from gateway.cli.ingest import run

    run(files, store, tenant, _settings(data_dir=data_dir), as_json)


@app.command()
def detect(
    file: Annotated[
        Path | None, typer.Argument(help='JSON lines {"text": ...}; default: standard input.')
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Lines per batch.")] = 1,
) -> None:
    """Find entities: JSON lines in, JSON lines {"spans": [...]} out, streaming."""
    from gateway.cli.detect import run

    run(file, batch)


@keys_app.command("create")
def keys_create(
    role: Annotated[
        str, typer.Option("--role", help="client; admin is reserved and opens nothing more yet.")
    ] = "client",
    tenant: Tenant = "default",
    name: Annotated[str, typer.Option("--name", help="A note for the list.")] = "",
    days: Annotated[
        float | None, typer.Option("--expires-days", help="Days until it expires.")
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Create a key; it is shown once."""
    from gateway.cli.keys import create

    create(_settings(data_dir=data_dir), role, tenant, name, days, as_json)


@keys_app.command("list")
def keys_list(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List keys by id and prefix, with their status."""
    from gateway.cli.keys import show

    show(_settings(data_dir=data_dir), as_json)


@keys_app.command("revoke")
def keys_revoke(
    key_id: Annotated[str, typer.Argument(help="A key's id, or the beginning of just one.")],
    data_dir: DataDir = None,
) -> None:
    """Revoke a key by its id."""
    from gateway.cli.keys import revoke

    revoke(_settings(data_dir=data_dir), key_id)


@keys_app.command("rotate-master")
def keys_rotate(data_dir: DataDir = None) -> None:
    """Wrap every tenant's key under the current master key, while servers run."""
    from gateway.cli.keys import rotate

    rotate(_settings(data_dir=data_dir))


@policy_app.command("check")
def policy_check(file: Annotated[str, typer.Argument(help="A file or a shipped name.")]) -> None:
    """Validate a policy; faults come with file, line and mend."""
    from gateway.cli.policy import check

    check(file)


@policy_app.command("show")
def policy_show(
    name: Annotated[str, typer.Argument(help="A file or a shipped name.")] = "balanced",
    as_json: Json = False,
) -> None:
    """Show a policy with every default filled in."""
    from gateway.cli.policy import show

    show(name, as_json)


@policy_app.command("try")
def policy_try(
    text: Annotated[str, typer.Argument(help="The text to try; - reads standard input.")],
    policy: PolicyName = "balanced",
    as_json: Json = False,
) -> None:
    """Show spans, the sanitised text and its cost; nothing is charged or stored."""
    from gateway.cli.policy import try_text

    try_text(text, policy, as_json)


@pools_app.command("build")
def pools_build(
    out: Annotated[Path, typer.Option("--out", help="Folder of the artefact.")],
) -> None:
    """Build the pools from the shipped lists into a versioned, hashed artefact."""
    from gateway.cli.pools import build

    build(out)


@pools_app.command("show")
def pools_show(as_json: Json = False) -> None:
    """Show the pools' version and sizes."""
    from gateway.cli.pools import show

    show(as_json)


@pools_app.command("verify")
def pools_verify() -> None:
    """Check the shipped pools against their hashes."""
    from gateway.cli.pools import verify

    verify()


JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of a job: ftjob-...")]


@finetune_app.command("create")
def finetune_create(
    file: Annotated[Path, typer.Argument(help='JSON lines: {"text", "label"} or {"messages"}.')],
    model: Annotated[str, typer.Option("--model", help="Base model.")] = "all-MiniLM-L6-v2",
    method: Annotated[str, typer.Option("--method", help="Method of training.")] = "dp_bitfit",
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="Privacy of this job; smaller is stricter.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of the method, value in JSON; repeatable."),
    ] = None,
    validation: Annotated[
        Path | None, typer.Option("--validation", help="A public file, for metrics.")
    ] = None,
    suffix: Annotated[str | None, typer.Option("--suffix", help="Part of the name.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Leave it to a running server.")] = False,
    tenant: Tenant = "default",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Train on a file, with live progress; the trained model is served by `penname serve`."""
    from gateway.cli.console import parse_settings
    from gateway.cli.finetune import create

    given = parse_settings(setting or [])
    if epsilon is not None:
        given["epsilon"] = epsilon
    create(
        _settings(data_dir=data_dir),
        tenant,
        file,
        model=model,
        method=method,
        given=given,
        validation=validation,
        suffix=suffix,
        detach=detach,
        as_json=as_json,
    )


@finetune_app.command("list")
def finetune_list(
    tenant: Tenant = "default", data_dir: DataDir = None, as_json: Json = False
) -> None:
    """List jobs, newest first."""
    from gateway.cli.finetune import show_all

    show_all(_settings(data_dir=data_dir), tenant, as_json)


@finetune_app.command("watch")
def finetune_watch(job: JobId, tenant: Tenant = "default", data_dir: DataDir = None) -> None:
    """Run what is queued and show a job's progress to its end."""
    from gateway.cli.finetune import watch

    watch(_settings(data_dir=data_dir), tenant, job)


@finetune_app.command("save")
def finetune_save(
    job: JobId,
    out: Annotated[Path, typer.Option("--out", help="Folder to write them to.")],
    tenant: Tenant = "default",
    data_dir: DataDir = None,
) -> None:
    """Write the result files of a job that has succeeded into a folder."""
    from gateway.cli.finetune import save

    save(_settings(data_dir=data_dir), tenant, job, out)


@finetune_app.command("plot")
def finetune_plot(job: JobId, tenant: Tenant = "default", data_dir: DataDir = None) -> None:
    """Draw epsilon and metrics over steps into the job's folder."""
    from gateway.cli.finetune import plot

    plot(_settings(data_dir=data_dir), tenant, job)


@finetune_app.command("cancel")
def finetune_cancel(job: JobId, tenant: Tenant = "default", data_dir: DataDir = None) -> None:
    """Cancel a job; the steps it took stay charged."""
    from gateway.cli.finetune import change

    change(_settings(data_dir=data_dir), tenant, job, "cancel")


@finetune_app.command("pause")
def finetune_pause(job: JobId, tenant: Tenant = "default", data_dir: DataDir = None) -> None:
    """Pause a job after a checkpoint."""
    from gateway.cli.finetune import change

    change(_settings(data_dir=data_dir), tenant, job, "pause")


@finetune_app.command("resume")
def finetune_resume(job: JobId, tenant: Tenant = "default", data_dir: DataDir = None) -> None:
    """Queue a paused job again."""
    from gateway.cli.finetune import change

    change(_settings(data_dir=data_dir), tenant, job, "resume")


def main() -> None:
    """Entry point: errors that a user can mend are one line, not a traceback."""
    from gateway.cli.console import complain, explain, is_mendable

    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if not is_mendable(error):
            raise
        complain(explain(error))
        sys.exit(2)


if __name__ == "__main__":
    main()
