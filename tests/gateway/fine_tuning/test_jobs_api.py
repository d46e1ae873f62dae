"""Fine-tuning jobs through the official client against a real gateway and real workers."""

import pytest
from jobs_gateway import CANARY, TINY, Running, rows


def test_a_job_trains_and_its_model_answers(trainer: Running) -> None:
    file = trainer.upload(rows())
    made = trainer.create(file, suffix="mood", metadata={"team": "a"})
    assert made.status == "queued"
    done = trainer.wait(made.id)
    name = done.fine_tuned_model
    assert name.startswith(f"ft:{TINY}:acme:mood:")
    assert name in [model.id for model in trainer.acme.models.list()]
    answer = trainer.acme.chat.completions.create(
        model=name, messages=[{"role": "user", "content": "a wonderful happy delight"}]
    )
    assert answer.choices[0].message.content in ("good", "bad")
