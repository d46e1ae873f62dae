"""All attacks by ε and k, restartable: results are added to one JSON file as they come."""

import itertools
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from learning.ppft import corpora
from learning.ppft.attacks.inversion import invert, train_inverter
from learning.ppft.attacks.measures import read_facts
from learning.ppft.attacks.patients import Patient, read_patients
from learning.ppft.attacks.reconstruction import reconstruct
from learning.ppft.attacks.rows import infer_attributes, retrieve
from learning.ppft.export import Encoded, clean_rows, export_public, windows
from privacy.ppft.encoder import TokenEncoder, TokenStates
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record
from privacy.ppft.rows import obfuscate
from privacy.ppft.tasks import Task
from privacy.randomness import SystemRandomness

EPSILONS: Final = (None, 600.0, 300.0, 150.0, 75.0, 30.0)
WINDOWS: Final = (4, 8, 16)
# (k, ε that the decoder learns from, ε of the rows that it is given); the unaware one meets every ε.
INVERSIONS: Final[tuple[tuple[int, float | None, tuple[float | None, ...]], ...]] = (
    (4, None, (None, 150.0, 75.0, 30.0)),
    (4, 75.0, (75.0,)),
    (4, 150.0, (150.0,)),
    (4, 30.0, (30.0,)),
    (16, 75.0, (75.0,)),
    (8, 75.0, (75.0,)),
    (16, 150.0, (150.0,)),
    (8, 150.0, (150.0,)),
    (16, 30.0, (30.0,)),
    (8, 30.0, (30.0,)),
)
Rows = NDArray[np.float32]
Sanitiser = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class AttackStudy:
    """What is attacked and with what.

    Attributes:
        out: JSON file of the results.
        data: The data collection.
        encoder: The client's encoder, known to the attacker.
        decoder: Folder of the inverter's decoder; None leaves inversion out.
        minutes: Budget; no inverter is begun after it.
        sanitisers: Text mechanisms to compare with, by name.
        steps: Steps of an inverter.
        victims: Patients whose texts are inverted or sanitised.
        device: Where inverters are trained, as torch names it.
    """

    out: Path
    data: Path
    encoder: TokenEncoder
    decoder: Path | None = None
    minutes: float = 60.0
    sanitisers: tuple[tuple[str, Sanitiser], ...] = ()
    steps: int = 80
    victims: int = 60
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class Target:
    """Whom an inverter learns from and whom it is turned against, encoded."""

    known: Sequence[Patient]
    known_states: Sequence[TokenStates]
    victims: Sequence[Patient]
    victim_states: Sequence[TokenStates]

    def first(self, count: int) -> "Target":
        """The same with fewer victims."""
        return replace(self, victims=self.victims[:count], victim_states=self.victim_states[:count])


def run(study: AttackStudy, say: Callable[[str], None] = print) -> None:
    """Run what the file does not hold yet."""
    began = time.monotonic()
    known, victims = (read_patients(study.data, split) for split in ("train", "eval"))
    states = [study.encoder.encode([p.text for p in people]) for people in (known, victims)]
    target = Target(known, states[0], victims, states[1])
    results = _Results(study.out, say)
    grid = [(f"k{k}-{_name(e)}", k, Noise.of(e)) for k in WINDOWS for e in EPSILONS]
    grid += [(f"gaussian-k4-{e:g}", 4, Noise("gaussian", e)) for e in (150.0, 75.0)]
    for name, k, noise in grid:
        results.once(name, partial(rows_attacked, target, k, noise))
        results.once(f"reconstruction-{name}", partial(texts_reconstructed, target, k, noise))
    sentences = study.encoder.encode([r.context for r in corpora.read("sst2", study.data, "eval")])
    for k, epsilon in itertools.product(WINDOWS, EPSILONS):
        name = f"sst2-k{k}-{_name(epsilon)}"
        results.once(name, partial(sentences_attacked, sentences, k, epsilon))
    first = target.first(study.victims)
    texts = [p.text for p in first.victims]
    others = [p.text for p in known[: len(texts)]]
    results.once("text-plain", lambda: read_facts(texts, first.victims))
    results.once("text-another", lambda: read_facts(others, first.victims))
    for name, sanitise in study.sanitisers:
        results.once(f"text-{name}", partial(texts_read, first, sanitise))
        work = partial(texts_attacked, study.encoder, target, sanitise)
        results.once(f"attributes-text-{name}", work)
    if study.decoder is not None:
        _invert_all(study, study.decoder, results, first, began)


def sentences_attacked(
    states: Sequence[TokenStates], k: int, epsilon: float | None
) -> dict[str, Any]:
    """Retrieval of ordinary sentences' windows (SST-2) among their own few thousand."""
    noise, source = Noise.of(epsilon), SystemRandomness()
    clean = np.concatenate([clean_rows(s, k) for s in states])
    flat = np.concatenate([obfuscate(s.states, k, noise, source) for s in states])
    truth: NDArray[np.int64] = np.arange(len(clean), dtype=np.int64)
    return {"retrieval": retrieve(flat, truth, clean)}


def rows_attacked(target: Target, k: int, noise: Noise) -> dict[str, Any]:
    """Retrieval and attribute inference at one k and noise; the gallery holds the victims' windows."""
    source = SystemRandomness()
    noised = [
        [obfuscate(s.states, k, noise, source) for s in people]
        for people in (target.known_states, target.victim_states)
    ]
    clean = np.concatenate([clean_rows(s, k) for s in target.victim_states])
    others = np.concatenate([clean_rows(s, k) for s in target.known_states])
    gallery = np.concatenate([clean, others])
    truth = np.arange(len(clean), dtype=np.int64)
    flat = np.concatenate(noised[1])
    return {
        "cosine": float((flat * clean).sum(axis=1).mean()),
        "retrieval": retrieve(flat, truth, gallery),
        "attributes": infer_attributes(target.known, noised[0], target.victims, noised[1]),
    }


def texts_reconstructed(target: Target, k: int, noise: Noise) -> dict[str, float]:
    """What a reader learns of the victims' texts put together from other patients' windows."""
    source = SystemRandomness()
    gallery = np.concatenate([clean_rows(s, k) for s in target.known_states])
    texts = [
        window
        for person, s in zip(target.known, target.known_states, strict=True)
        for window in windows(person.text, s.offsets, k)
    ]
    rows = [obfuscate(s.states, k, noise, source) for s in target.victim_states]
    return read_facts(reconstruct(rows, gallery, texts), target.victims)


def texts_read(target: Target, sanitise: Sanitiser) -> dict[str, float]:
    """What a reader learns of sanitised texts."""
    return read_facts([sanitise(p.text) for p in target.victims], target.victims)


def texts_attacked(encoder: TokenEncoder, target: Target, sanitise: Sanitiser) -> dict[str, float]:
    """Attribute inference from sanitised texts, by one who sanitises other patients' texts alike."""
    rows = [
        [clean_rows(s, 4) for s in encoder.encode([sanitise(p.text) for p in people])]
        for people in (target.known, target.victims)
    ]
    return infer_attributes(target.known, rows[0], target.victims, rows[1])


class _Results:
    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self.values: dict[str, Any] = {}
        if path.exists():
            self.values = json.loads(path.read_text("utf-8"))
        path.parent.mkdir(parents=True, exist_ok=True)

    def once(self, name: str, work: Callable[[], Any]) -> None:
        """Do what has no result yet."""
        if name not in self.values:
            self.keep(name, work())

    def keep(self, name: str, value: Any) -> None:
        self.values[name] = value
        scratch = self._path.with_suffix(".part")
        scratch.write_text(json.dumps(self.values, indent=2) + "\n", "utf-8")
        os.replace(scratch, self._path)
        self._say(f"{name}: {json.dumps(value)}")


def _invert_all(
    study: AttackStudy, decoder: Path, results: _Results, target: Target, began: float
) -> None:
    """Train an inverter for each window and knowledge of the noise."""
    for k, trained, tested in INVERSIONS:
        names = [f"inversion-k{k}-{_name(trained)}-on-{_name(epsilon)}" for epsilon in tested]
        if all(name in results.values for name in names):
            continue
        if time.monotonic() - began > 60.0 * study.minutes:
            return
        model = _inverter(study, decoder, target, k, trained)
        for name, epsilon in zip(names, tested, strict=True):
            found = invert(model, _noised(target.victim_states, k, epsilon))
            results.keep(name, read_facts(found, target.victims))


def _inverter(
    study: AttackStudy, decoder: Path, target: Target, k: int, epsilon: float | None
) -> Any:
    import torch

    from learning.device import dtype_of
    from learning.ppft.align import align_clean, align_noisy
    from learning.ppft.decoder import load_decoder
    from learning.ppft.model import Lora, PpftModel
    from learning.ppft.train import Plan

    device = torch.device(study.device)
    loaded = load_decoder(decoder, study.device, dtype_of(device))
    model = PpftModel.create(loaded, study.encoder.dimensions, Lora())
    texts = [p.text for p in target.known]
    records = [Record(Task.EXTRACT, question=text, answer=text) for text in texts]
    encoded = Encoded(records, list(target.known_states), texts)
    public = export_public(encoded, study.encoder, k)
    align_clean(model, public)
    if epsilon is not None:
        align_noisy(model, public.rows, Noise.of(epsilon), SystemRandomness())
    rows = _noised(target.known_states, k, epsilon)
    train_inverter(model, rows, texts, Plan(steps=study.steps, batch=8), lambda event: None)
    return model


def _noised(states: Sequence[TokenStates], k: int, epsilon: float | None) -> list[Rows]:
    source, noise = SystemRandomness(), Noise.of(epsilon)
    return [obfuscate(item.states, k, noise, source) for item in states]


def _name(epsilon: float | None) -> str:
    return "clean" if epsilon is None else f"{epsilon:g}"
