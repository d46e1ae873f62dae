"""The one module that needs torch for the embedding model: the export to ONNX, run once."""

import os
import warnings
from pathlib import Path


def export_minilm(source: Path, target: Path) -> None:
    """Write the encoder of all-MiniLM-L6-v2 as fp32 ONNX.

    Inputs ``input_ids`` and ``attention_mask`` are int64 (batch, tokens); the output ``states``
    is float32 (batch, tokens, 384), before pooling.

    Args:
        source: Folder with ``config.json`` and ``model.safetensors``, verified by the caller.
        target: File to write.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(
        str(source),
        local_files_only=True,
        use_safetensors=True,
        dtype=torch.float32,
        # Tracing turns the fused attention into a graph that bakes in the example's length.
        attn_implementation="eager",
    ).eval()

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model  # registered here, or its weights would be traced as constants

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                token_type_ids=torch.zeros_like(input_ids),
            ).last_hidden_state
            return states

    example = torch.ones((2, 9), dtype=torch.int64)
    axes = {0: "batch", 1: "tokens"}
    with warnings.catch_warnings(), torch.no_grad():
        # The tracing exporter announces its successor, which needs a package that is not here.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            States(),
            (example, example),
            str(target),
            dynamo=False,
            opset_version=17,
            input_names=["input_ids", "attention_mask"],
            output_names=["states"],
            dynamic_axes={"input_ids": axes, "attention_mask": axes, "states": axes},
        )
