"""One fine-tuning job from files to files: model folder and JSONL in, delta and card out."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from learning.bitfit.config import FineTuning
from learning.bitfit.data import TensorData, tokenized
from learning.bitfit.events import Event
from learning.bitfit.losses import causal_lm_loss, classification_loss
from learning.bitfit.trainer import TrainResult, train
from learning.device import own_device


class Job(BaseModel):
    """What a worker is handed.

    Attributes:
        model: Folder of a Hugging Face model; nothing is downloaded.
        task: ``classification`` (lines ``{"text", "label"}``) or ``causal_lm`` (lines ``{"text"}``).
        data: JSONL file; one line is one record, the unit of privacy.
        labels: Class names, public and in order; needed for classification.
        output: Folder for the result.
        checkpoints: Folder for the checkpoint; a job started again goes on from it.
        max_length: Tokens of a record that are used.
        threads: CPU threads.
        run: Mechanism, phases, optimiser.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Path
    task: Literal["classification", "causal_lm"] = "classification"
    data: Path
    labels: tuple[str, ...] = ()
    output: Path
    checkpoints: Path | None = None
    max_length: int = Field(default=256, ge=2)
    threads: int = Field(default=1, ge=1)
    run: FineTuning


def run_job(
    job: Job,
    on_event: Callable[[Event], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> TrainResult:
    """Train, and write the result unless the job was stopped.

    Raises:
        ValueError: A line of the data is not what the task needs; the message names the line.
        PrivacyError: The model does not allow the guarantee.
        CheckpointError: The checkpoint is another job's.
    """
    torch.set_num_threads(job.threads)
    device = own_device()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    model, data = _model(job).to(device), _data(job)
    result = train(
        model,
        data,
        job.run,
        loss=classification_loss if job.task == "classification" else causal_lm_loss,
        on_event=on_event,
        checkpoint_dir=job.checkpoints,
        should_stop=should_stop,
    )
    if result.status == "completed" and int(os.environ.get("RANK", "0")) == 0:
        result.save(job.output)
    return result


def _model(job: Job) -> nn.Module:
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    if job.task == "causal_lm":
        model: nn.Module = AutoModelForCausalLM.from_pretrained(job.model, local_files_only=True)
        return model
    if len(job.labels) < 2:
        raise ValueError("a classification job needs the names of at least two labels")
    # A head of one's own gets the same start on every resume: its values come from the checkpoint.
    model = AutoModelForSequenceClassification.from_pretrained(
        job.model, num_labels=len(job.labels), local_files_only=True
    )
    return model


def _data(job: Job) -> TensorData:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(job.model, local_files_only=True)
    texts, labels = read_records(job.data, job.task, job.labels)
    ids = tokenizer(texts, truncation=True, max_length=job.max_length)["input_ids"]
    pad = tokenizer.pad_token_id or 0
    return tokenized(ids, labels if job.task == "classification" else None, pad=pad)


def read_records(path: Path, task: str, labels: tuple[str, ...]) -> tuple[list[str], list[int]]:
    """Texts and label numbers of a JSONL file.

    Raises:
        ValueError: Names the first line that is wrong, and what is wrong with it.
    """
    texts: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path.name}, line {number}: not JSON ({error.msg})") from error
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            raise ValueError(f'{path.name}, line {number}: needs a string "text"')
        if task == "classification":
            if record.get("label") not in labels:
                raise ValueError(
                    f'{path.name}, line {number}: "label" must be one of {", ".join(labels)}'
                )
            numbers.append(labels.index(record["label"]))
        texts.append(record["text"])
    if not texts:
        raise ValueError(f"{path.name} has no record")
    return texts, numbers
