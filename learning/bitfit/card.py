"""The model card of a result: what was trained, what it cost, what it promises."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from learning.bitfit.accountant import MECHANISM, Accountant
from learning.bitfit.checkpoint import SEED_POLICY
from learning.bitfit.config import FineTuning


def facts(
    config: FineTuning,
    account: Accountant,
    noise_multiplier: float,
    trained: int,
    total: int,
    done: int,
) -> dict[str, Any]:
    """Facts of a run, plain data.

    Args:
        config: The run.
        account: Everything charged to the data set, this run included.
        noise_multiplier: Sigma of this run.
        trained: Number of trained values.
        total: Number of values of the model.
        done: Steps taken, fewer than planned when the run was stopped.
    """
    delta = config.target_delta
    return {
        "private": config.private,
        "epsilon": account.epsilon(delta) if config.private else None,
        "epsilon_replace_one": account.epsilon(delta, "replace_one") if config.private else None,
        "delta": delta,
        "adjacency": "add or remove one record",
        "unit_of_privacy": "one record",
        "accounting": MECHANISM,
        "history": account.state_dict()["history"],
        "noise_multiplier": noise_multiplier if config.private else None,
        "max_grad_norm": config.max_grad_norm,
        "clipping": config.clipping if config.private else None,
        "phases": [
            {
                "method": phase.method,
                "steps": steps,
                "sampling_rate": config.rate_of(phase),
                "learning_rate": phase.learning_rate,
            }
            for phase, steps in zip(config.phases, config.taken_of(done), strict=True)
        ],
        "seed_policy": SEED_POLICY,
        "trained_parameters": trained,
        "model_parameters": total,
    }


def model_card(card: Mapping[str, Any]) -> str:
    """The facts as Markdown."""
    lines = ["# Fine-tuned delta", ""]
    if card["private"]:
        lines += [
            f"- **Guarantee**: ({card['epsilon']:.4g}, {card['delta']:.3g})-differential privacy, "
            f"{card['adjacency']}; the same runs under replacement of one record: epsilon "
            f"{card['epsilon_replace_one']:.4g}. It covers every run in the last table.",
            f"- **Unit of privacy**: {card['unit_of_privacy']}.",
            f"- **Accounting**: {card['accounting']}.",
            f"- **Noise multiplier**: {card['noise_multiplier']:.5g}; clipping norm "
            f"{card['max_grad_norm']:g}, {card['clipping']} clipping.",
            f"- **Randomness**: {card['seed_policy']}.",
        ]
    else:
        lines.append("- **No guarantee**: trained without clipping and noise.")
    share = card["trained_parameters"] / max(1, card["model_parameters"])
    lines.append(
        f"- **Trained**: {card['trained_parameters']:,} of {card['model_parameters']:,} "
        f"parameters ({share:.3%})."
    )
    lines += ["", "| phase | steps | q | learning rate |", "|---|---|---|---|"]
    for phase in card["phases"]:
        lines.append(
            f"| {phase['method']} | {phase['steps']} | {phase['sampling_rate']:.6g} | "
            f"{phase['learning_rate']:g} |"
        )
    lines += ["", "| runs that this guarantee covers | q | sigma | steps |", "|---|---|---|---|"]
    for entry in card["history"]:
        lines.append(
            f"| {entry['label'] or '-'} | {entry['rate']:.6g} | {entry['noise_multiplier']:.5g} | "
            f"{entry['steps']} |"
        )
    return "\n".join(lines) + "\n"


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write ``README.md`` beside the delta."""
    (folder / "README.md").write_text(model_card(card), encoding="utf-8")
