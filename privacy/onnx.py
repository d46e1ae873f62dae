"""Sessions of onnxruntime, all with the same options."""

from typing import Any


def onnx_session(model: str | bytes, threads: int) -> Any:
    """Return a session on the CPU.

    Args:
        model: Path of the model, or its bytes.
        threads: Threads inside one run.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Idle threads must not spin: the server shares its cores with other models.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
