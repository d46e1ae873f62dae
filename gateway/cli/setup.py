"""`penname setup`: everything that is prepared once per machine."""

from rich.console import Console

from connectors.weights import WeightsError, cache_folder, chat_model_gguf, embedder_onnx
from gateway.bootstrap import load_embedding
from gateway.cli.console import CommandError, complain, progress
from privacy.detection.ner import NerTagger
from privacy.pools.artefact import PoolSet


def run() -> None:
    """Prepare every model.

    Raises:
        CommandError: The cache folder can not be written.
    """
    try:
        _prepare()
    except OSError as error:
        raise CommandError(
            f"the cache folder {cache_folder()} cannot be used ({error.strerror or error}); it takes "
            "some 130 MB. Free space, or name another with PENNAME_CACHE."
        ) from None


def _prepare() -> None:
    missing = ""
    with progress("chat model") as report:
        report("verifying", 0.2)
        try:
            chat_model_gguf()
        except WeightsError as error:
            missing = str(error)
    with progress("text encoder") as report:
        embedder_onnx(lambda step: report(step, 0.5))
    with progress("word vectors") as report:
        embedding = load_embedding(report)
    with progress("pools") as report:
        report("verifying", 0.2)
        pools = PoolSet.load()
        pools.check_embedding(embedding)
    with progress("entity model") as report:
        report("verifying", 0.2)
        NerTagger.load()
    if missing:
        complain(f"'penname demo' and the model penname-local will not work. {missing}")
    Console(stderr=True).print(
        f"ready: pools {pools.version}, weights verified", style="green", highlight=False
    )
