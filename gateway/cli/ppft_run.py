"""The work of `penname ppft`: encoders and weights from the connectors, the rest from `learning.ppft`."""

import asyncio
import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from rich.console import Console

from connectors.base import UpstreamError
from connectors.token_encoder import token_encoder
from connectors.weights import CHAT_MODEL, cache_folder, chat_model_gguf
from gateway.cli.console import CommandError, listening_socket, load_settings
from gateway.jobs.bases import PPFT_INTENT
from gateway.settings import Settings
from learning.ppft import corpora, dataset
from learning.ppft.export import Encoded, Limits, encode, export, export_public
from learning.ppft.shipped import INTENT
from privacy.ppft.accounting import ACCOUNT, Cost, charge
from privacy.ppft.encoder import TokenEncoder
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record, multiple_choice
from privacy.ppft.tasks import task_named

if TYPE_CHECKING:
    from learning.ppft.artefact import Card
    from learning.ppft.model import PpftModel

_KEYS = "PENNAME_PPFT_KEYS"


@dataclass(frozen=True, slots=True)
class Source:
    """Where records come from and how they are encoded."""

    names: tuple[str, ...]
    records: Path | None
    folder: Path | None
    most: int
    slots: int
    encoder: str
    k: int
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class TrainJob:
    """One training stage, as the command line gives it."""

    stage: int
    data: tuple[Path, ...]
    out: Path
    base: Path | None
    public: Path | None
    decoder: str
    steps: int
    batch: int
    minutes: float | None
    device: str


def use_threads(threads: int) -> None:
    """Bound torch's threads before anything runs."""
    import torch

    torch.set_num_threads(threads)


def noise_of(epsilon: float, mechanism: Literal["laplace", "gaussian"] = "laplace") -> Noise:
    try:
        return Noise(mechanism, epsilon)
    except ValueError as error:
        raise CommandError(str(error)) from None


def export_public_data(source: Source, out: Path) -> None:
    encoder, encoded = _encoded(source)
    dataset.save(export_public(encoded, encoder, source.k, _origin(source)), out)
    _say(f"{out}: {len(encoded.records)} public records, not noised, their words included")


def export_private(
    source: Source, out: Path, noise: Noise, tenant: str, data_dir: Path | None
) -> None:
    encoder, encoded = _encoded(source)
    data, costs = export(encoded, encoder, source.k, noise, _origin(source))
    _charge(encoded, costs, noise, tenant, data_dir, out.name)
    dataset.save(data, out)
    most = max((cost.epsilon for cost in costs), default=0.0)
    _say(
        f"{out}: {len(data)} records, at most ε {costs[0].epsilon_per_slot if costs else 0:g} a row "
        f"and {most:g} a record ({sum(c.epsilon for c in costs):g} in all), charged to the tenant {tenant}"
    )


def train_stage(job: TrainJob) -> None:
    from learning.ppft import artefact
    from learning.ppft.train import Plan, train, write_events

    data = dataset.merge([dataset.load(folder) for folder in job.data])
    model, card = _stage_model(job, data)
    first = int(os.environ.get("RANK", "0")) == 0
    events = write_events(
        job.out.with_name(job.out.name + ".events.jsonl"), _show if first else None
    )
    plan = Plan(job.steps, job.batch, minutes=math.inf if job.minutes is None else job.minutes)
    point = job.out.with_name(job.out.name + ".checkpoint")
    done = train(model, data.examples(), plan, point, events if first else (lambda _: None))
    if first:
        steps = done + (card.steps if job.stage == 2 else 0)
        artefact.save(model, replace(card, stage=job.stage, steps=steps), job.out)
        _say(f"{job.out}: stage {job.stage}, {done} steps")


def serve_models(
    models: list[str],
    decoder: str,
    host: str,
    port: int,
    batch: int,
    waiting: int,
    slots: int,
    device: str,
) -> None:
    import uvicorn

    from learning.ppft import artefact
    from learning.ppft.decoder import load_decoder
    from learning.ppft.server.app import Served, create_app
    from learning.ppft.server.batcher import Batcher

    keys = _keys()
    served: dict[str, Served] = {}
    for entry in models:
        name, _, folder = entry.partition("=")
        if not name or not folder or name in served:
            raise CommandError("--model takes NAME=FOLDER, each name once")
        loaded = load_decoder(_decoder_folder(decoder), *_place(device))
        model, card = artefact.load(model_folder(folder), loaded)
        served[name] = Served(card, Batcher(model, batch, waiting), slots)
    bound = listening_socket(host, port)  # here, so that port 0 can be told
    _say(f"serving {', '.join(served)}; no text is accepted")
    _say(f"http://{host}:{bound.getsockname()[1]}")
    config = uvicorn.Config(
        create_app(served, keys), log_level="warning", access_log=False, server_header=False
    )
    try:
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        bound.close()
        for one in served.values():
            one.batcher.close()


def model_folder(given: str) -> Path:
    """Return the folder of a trained model; ``ppft-intent`` is the shipped one."""
    return INTENT if given == PPFT_INTENT and not Path(given).exists() else Path(given)


def ask(
    text: str, server: str, model: str, task: str, k: int, epsilon: float, encoder: str
) -> None:
    from connectors.http import make_client
    from connectors.ppft import ClientOptions, PpftClient

    try:
        options = ClientOptions(k, noise_of(epsilon), task_named(task))
    except ValueError as error:
        raise CommandError(str(error)) from None
    key = _keys()[0]
    if not server.startswith(("http://", "https://")):
        raise CommandError(f"--server needs a URL such as http://127.0.0.1:8090, not {server}")

    async def once() -> tuple[str, Cost, int]:
        async with make_client(timeout=120, connect_timeout=5) as http:
            client = PpftClient(http, server, key, model, lambda: token_encoder(encoder), options)
            prepared = await client.prepare(Record(options.task, question=text))
            found = await client.answer(prepared)
            return str(found["text"]).strip(), prepared.cost, len(prepared.payload)

    try:
        answer, cost, size = asyncio.run(once())
    except UpstreamError as error:
        raise CommandError(_mend(error, server)) from None
    Console().print(answer, markup=False, highlight=False, soft_wrap=True)
    _say(
        f"{cost.slots} rows, {size} bytes; ε {cost.epsilon_per_slot:g} a row, {cost.epsilon:g} in all"
    )


def _mend(error: UpstreamError, server: str) -> str:
    if error.kind == "unreachable":
        return f"nothing answers at {server}; start `penname ppft serve`, or name it with --server"
    if error.status in (401, 403):
        return f"the server refuses the key (HTTP {error.status}); set {_KEYS} to one of its keys"
    if error.status in (404, 409):
        return f"{error.reason} Mend --model, --k or --encoder; {server}/v1/ppft/models lists them."
    return error.reason or str(error)


def study(out: Path, data: Path, minutes: float, device: str) -> None:
    from learning.ppft import small

    folder = _decoder_folder("smollm2")
    place, _ = _place(device)
    plan = small.Study(out, data, token_encoder(), folder, minutes, device=place)
    finished = small.run(plan, say=_say)
    _say(f"{out / 'results.json'}: {'complete' if finished else 'begun; run again to go on'}")


def attack(out: Path, data: Path, inversion: bool, minutes: float, device: str) -> None:
    from learning.ppft.attacks.report import AttackStudy, run

    decoder = _decoder_folder("smollm2") if inversion else None
    place, _ = _place(device)
    plan = AttackStudy(out, data, token_encoder(), decoder, minutes, _sanitisers(), device=place)
    run(plan, _say)


def _sanitisers() -> tuple[tuple[str, Callable[[str], str]], ...]:
    """The text mechanisms that attacks are compared with: this gateway's own, and word noise."""
    from learning.ppft.attacks.words import WordNoise
    from privacy.embedding.glove import read_glove
    from privacy.randomness import SystemRandomness

    table = read_glove()
    most = 50_000  # the commonest words
    words = WordNoise(table.words[:most], np.array(table.vectors[:most]), SystemRandomness())

    def noisy(epsilon: float) -> Callable[[str], str]:
        return lambda text: words.sanitise(text, epsilon)

    return (
        ("des", _substituted()),
        *((f"dchi-{epsilon:g}", noisy(epsilon)) for epsilon in (2.0, 5.0, 10.0, 20.0)),
    )


def _substituted() -> Callable[[str], str]:
    """The balanced policy's substitution, each text in a session of its own."""
    import secrets

    from gateway.bootstrap import build_detector, load_embedding
    from policies.compile import PolicyFilter, compile_rules
    from policies.loader import load_policy
    from privacy.pools.artefact import PoolSet
    from privacy.randomness import SystemRandomness
    from privacy.substitution.known import TextItem
    from privacy.substitution.planner import Planner, SessionContext

    policy, detector = load_policy("balanced"), build_detector(Settings())
    rules = compile_rules(policy, load_embedding())
    planner = Planner(
        rules, PoolSet.load(), SystemRandomness(), lambda _, __: secrets.token_hex(16)
    )

    def substitute(text: str) -> str:
        spans = PolicyFilter(policy).apply(text, detector.detect([text])[0])
        return str(planner.plan([TextItem(text, spans)], SessionContext()).texts[0])

    return substitute


def _encoded(source: Source) -> tuple[TokenEncoder, Encoded]:
    if not source.names and source.records is None:
        raise CommandError("name a --corpus or a file of --records")
    encoder = token_encoder(source.encoder, _place(source.device)[0])
    found = list(_records(source))
    encoded = encode(found, encoder, source.k, Limits(slots=source.slots))
    if not encoded.records:
        raise CommandError("no record is left: all are empty, unanswered or longer than --slots")
    _say(f"{len(encoded.records)} of {len(found)} records pass the length filter")
    return encoder, encoded


def _records(source: Source) -> Iterator[Record]:
    for name in source.names:
        if source.folder is None:
            raise CommandError("--corpus needs --data, the folder of the corpora")
        yield from islice(corpora.read(name, source.folder, "train"), source.most)
    if source.records is not None:
        with open(source.records, encoding="utf-8") as handle:
            for number, line in enumerate(handle, start=1):
                yield _record(line, f"{source.records}:{number}")


def _record(line: str, where: str) -> Record:
    try:
        item = json.loads(line)
        if item.get("options"):
            return multiple_choice(
                item.get("question", ""), item["options"], item["answer"], item.get("context", "")
            )
        task = task_named(item.get("task", "answer"))
        return Record(task, item.get("context", ""), item.get("question", ""), (), item["answer"])
    except json.JSONDecodeError:
        raise CommandError(f"{where}: is not JSON; write one JSON object per line") from None
    except KeyError as error:
        raise CommandError(f"{where}: has no field {error}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise CommandError(f"{where}: {error or 'not a record'}") from None


def _origin(source: Source) -> tuple[str, ...]:
    return source.names + (("records",) if source.records else ())


def _charge(
    encoded: Encoded, costs: list[Cost], noise: Noise, tenant: str, data_dir: Path | None, name: str
) -> None:
    """Charge every record before the dataset exists: what is written can be copied."""
    from gateway.bootstrap import open_database
    from store.ledger import Ledger
    from store.tenants import TenantStore

    db = open_database(load_settings(data_dir=data_dir))
    try:
        TenantStore(db).ensure(tenant)
        records = zip(encoded.texts, (charge(cost, noise) for cost in costs), strict=True)
        Ledger(db).append_records(tenant, ACCOUNT, f"ppft-export:{name}", records)
    finally:
        db.close()


def _stage_model(job: TrainJob, data: dataset.RowData) -> "tuple[PpftModel, Card]":
    from learning.ppft import artefact
    from learning.ppft.align import align_clean, align_noisy
    from learning.ppft.decoder import load_decoder
    from learning.ppft.model import Lora, PpftModel
    from privacy.randomness import SystemRandomness

    meta = data.meta
    decoder = load_decoder(_decoder_folder(job.decoder), *_place(job.device))
    if job.stage == 1:
        model = PpftModel.create(decoder, meta.dimensions, Lora())
        _say(f"the first projection explains {align_clean(model, data):.2f} of the embeddings")
        return model, artefact.Card(meta.encoder, meta.dimensions, meta.k, decoder.name).of(meta)
    if job.base is None:
        raise CommandError("stage 2 needs --base, the model of stage 1")
    model, card = artefact.load(job.base, decoder)
    card.check(meta)
    if job.public is not None and meta.epsilon is not None:
        noise = Noise.of(meta.epsilon, "gaussian" if meta.mechanism == "gaussian" else "laplace")
        align_noisy(model, dataset.load(job.public).rows[:3000], noise, SystemRandomness())
    return model, card.of(meta)


def _decoder_folder(name: str) -> Path:
    if name != "smollm2":
        return Path(name)
    from learning.ppft.decoder import convert_gguf

    return convert_gguf(chat_model_gguf(), cache_folder(), CHAT_MODEL.sha256)


def _place(name: str) -> tuple[str, str]:
    """Device and type of a decoder."""
    from learning.device import claim, dtype_of

    try:
        device = claim(name)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return str(device), dtype_of(device)


def _keys() -> tuple[str, ...]:
    keys = tuple(key.strip() for key in os.environ.get(_KEYS, "").split(",") if key.strip())
    if not keys:
        raise CommandError(f"set {_KEYS} to one or more bearer keys, separated by commas")
    return keys


def _show(event: dict[str, object]) -> None:
    _say(json.dumps(event))


def _say(text: str) -> None:
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)
