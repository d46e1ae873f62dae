"""How many tokens a model can read, by its configuration."""

from collections.abc import Mapping
from typing import Any, Final

_BEHIND_PADDING: Final = frozenset(
    {
        "camembert",
        "data2vec-text",
        "esm",
        "ibert",
        "lilt",
        "longformer",
        "luke",
        "markuplm",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    }
)


def positions(config: Mapping[str, Any], otherwise: int) -> int:
    """Return how many tokens a model can number, special ones included.

    RoBERTa and its kin number the first token one behind the padding's number.

    Args:
        config: The model's ``config.json``.
        otherwise: For a model without a table of positions.
    """
    named = config.get("max_position_embeddings", config.get("n_positions"))  # GPT-2's word
    limit = named if isinstance(named, int) else otherwise
    if config.get("model_type") not in _BEHIND_PADDING:
        return limit
    padding = config.get("pad_token_id")
    # Their default where the file does not say; MPNet's table begins there whatever it says.
    return limit - (1 if padding is None or config["model_type"] == "mpnet" else int(padding)) - 1
