"""`penname ppft`: the embedding-only backend at both ends; thin, the work is in `ppft_run`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="The backend that never sees text: train, serve, ask and attack.", no_args_is_help=True
)

EncoderName = Annotated[
    str, typer.Option("--encoder", help="minilm, or a folder or hub name of any encoder.")
]
DecoderName = Annotated[
    str, typer.Option("--decoder", help="smollm2, or a folder or hub name of any causal model.")
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda; bf16 on cuda.")]
Threads = Annotated[int, typer.Option("--threads", min=1, help="CPU threads of the model.")]
Window = Annotated[int, typer.Option("--k", min=1, max=64, help="Tokens pooled into one row.")]
Epsilon = Annotated[
    float, typer.Option("--epsilon", help="Noise rate per unit of distance; a row costs up to 2ε.")
]
Data = Annotated[
    Path, typer.Option("--data", help="Folder of corpora, one folder each.", exists=True)
]


class NoiseName(StrEnum):
    """The mechanisms of the command line."""

    laplace = "laplace"
    gaussian = "gaussian"


Mechanism = Annotated[NoiseName, typer.Option("--mechanism", help="Distribution of the noise.")]


@app.command()
def export(
    out: Annotated[Path, typer.Option("--out", help="Folder of the dataset.")],
    corpus: Annotated[
        list[str] | None, typer.Option("--corpus", help="A corpus of --data; repeatable.")
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option("--records", help="JSON lines: task, context, question, options, answer."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of the corpora.", exists=True)
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Public text for stage 1: no noise, words included.")
    ] = False,
    k: Window = 4,
    epsilon: Epsilon = 75.0,
    mechanism: Mechanism = NoiseName.laplace,
    encoder: EncoderName = "minilm",
    most: Annotated[int, typer.Option("--most", min=1, help="Records of each corpus.")] = 5000,
    slots: Annotated[
        int, typer.Option("--slots", min=1, help="Longer records are left out.")
    ] = 128,
    tenant: Annotated[str, typer.Option("--tenant", help="Whose ledger is charged.")] = "default",
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Data folder whose ledger is charged.")
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="Of an encoder other than minilm: cpu or cuda.")
    ] = "cpu",
) -> None:
    """Customer's side: encode, noise, write a dataset; charge the ledger's account ppft."""
    from gateway.cli import ppft_run

    source = ppft_run.Source(tuple(corpus or ()), records, data, most, slots, encoder, k, device)
    if public:
        ppft_run.export_public_data(source, out)
    else:
        noise = ppft_run.noise_of(epsilon, mechanism.value)
        ppft_run.export_private(source, out, noise, tenant, data_dir)


@app.command()
def train(
    stage: Annotated[int, typer.Option("--stage", min=1, max=2, help="1: align, 2: adapt.")],
    data: Annotated[list[Path], typer.Option("--data", help="Exported dataset; repeatable.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the trained model.")],
    base: Annotated[
        Path | None, typer.Option("--base", help="Model of stage 1, for stage 2.")
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option("--public", help="Public dataset that fits the projection to the noise."),
    ] = None,
    decoder: DecoderName = "smollm2",
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps in all.")] = 300,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Records a step.")] = 16,
    budget_minutes: Annotated[
        float | None, typer.Option("--budget-minutes", help="End earlier, schedule included.")
    ] = None,
    device: Device = "cpu",
    threads: Threads = 1,
) -> None:
    """Server's side: train from exported files alone; resumes, also under torchrun."""
    from gateway.cli import ppft_run

    ppft_run.use_threads(threads)
    job = ppft_run.TrainJob(
        stage, tuple(data), out, base, public, decoder, steps, batch, budget_minutes, device
    )
    ppft_run.train_stage(job)


@app.command()
def serve(
    model: Annotated[
        list[str],
        typer.Option(
            "--model", help="NAME=FOLDER of a trained model, or NAME=ppft-intent; repeatable."
        ),
    ],
    decoder: DecoderName = "smollm2",
    host: Annotated[str, typer.Option("--host", help="Address to bind.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 picks one.")] = 8090,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Requests answered together.")] = 16,
    waiting: Annotated[int, typer.Option("--queue", min=1, help="Places before 429.")] = 64,
    slots: Annotated[int, typer.Option("--slots", min=1, help="Most rows a request.")] = 512,
    device: Device = "cpu",
    threads: Threads = 1,
) -> None:
    """Serve models; the bearer keys are in PENNAME_PPFT_KEYS, separated by commas."""
    from gateway.cli import ppft_run

    ppft_run.use_threads(threads)
    ppft_run.serve_models(model, decoder, host, port, batch, waiting, slots, device)


@app.command()
def ask(
    text: Annotated[str, typer.Argument(help="The question; it stays here.")],
    model: Annotated[str, typer.Option("--model", help="Its name on the server.")],
    server: Annotated[
        str, typer.Option("--server", help="The server's address.")
    ] = "http://127.0.0.1:8090",
    task: Annotated[str, typer.Option("--task", help="answer, sentiment, topic ...")] = "answer",
    k: Window = 4,
    epsilon: Epsilon = 75.0,
    encoder: EncoderName = "minilm",
) -> None:
    """Ask a server once; the key is in PENNAME_PPFT_KEYS."""
    from gateway.cli import ppft_run

    ppft_run.ask(text, server, model, task, k, epsilon, encoder)


@app.command()
def study(
    out: Annotated[Path, typer.Option("--out", help="Folder of datasets, models, results.")],
    data: Data,
    budget_minutes: Annotated[
        float, typer.Option("--budget-minutes", help="No run is begun after it.")
    ] = 180.0,
    device: Device = "cpu",
    threads: Threads = 1,
) -> None:
    """Train and judge the small models on real corpora; goes on where it stopped."""
    from gateway.cli import ppft_run

    ppft_run.use_threads(threads)
    ppft_run.study(out, data, budget_minutes, device)


@app.command()
def attack(
    out: Annotated[Path, typer.Option("--out", help="JSON file of the results.")],
    data: Data,
    inversion: Annotated[
        bool, typer.Option("--inversion", help="Train inversion decoders too (slow).")
    ] = False,
    budget_minutes: Annotated[
        float, typer.Option("--budget-minutes", help="No inversion decoder is begun after it.")
    ] = 60.0,
    device: Device = "cpu",
    threads: Threads = 1,
) -> None:
    """Attack one's own rows: retrieval, inference, reconstruction, inversion; goes on where it stopped."""
    from gateway.cli import ppft_run

    ppft_run.use_threads(threads)
    ppft_run.attack(out, data, inversion, budget_minutes, device)
