"""Building the long-lived parts of a gateway from settings."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from connectors.encoder import MiniLmEncoder
from connectors.http import make_client
from connectors.router import Router, build_router
from connectors.weights import cache_folder
from gateway.config import ServerConfig
from gateway.events import EventBus
from gateway.pipeline import Pipeline
from gateway.services import Services
from gateway.settings import Settings
from policies.loader import load_policy
from policies.model import Policy
from privacy.detection.engine import Detector
from privacy.detection.registry import default_recognizers
from privacy.embedding import Embedding
from privacy.pools.artefact import PoolSet
from privacy.randomness import Randomness, SystemRandomness
from privacy.types import ENTITY_TYPES
from store.crypto import Keyring
from store.database import Database, parse_url
from store.documents import DocumentStore
from store.errors import StoreUnavailable
from store.files import FileStore
from store.keys import KeyStore
from store.responses import ResponseStore
from store.sessions import SessionStore
from store.tenants import TenantStore
from store.vectors import VectorIndex

_HOUR = 3600.0


class LazyTagger:
    """The NER model, loaded at first use or by `warm`."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._tagger: Any = None

    def warm(self) -> None:
        with self._lock:
            if self._tagger is None:
                from privacy.detection.ner import NerTagger

                self._tagger = NerTagger.load(threads=self._threads)

    def tag(self, texts: Sequence[str]) -> Any:
        self.warm()
        return self._tagger.tag(texts)


def build_detector(settings: Settings) -> Detector:
    """Return the detector; policies apply their thresholds later, so none is applied here."""
    return Detector(
        default_recognizers(),
        LazyTagger(settings.ner_threads),
        thresholds=dict.fromkeys(ENTITY_TYPES, 0.0),
        cache_size=settings.cache_entries,
    )


def open_database(settings: Settings, *, create: bool = True) -> Database:
    """Open and upgrade the database of a data folder.

    Args:
        create: Make the folder, its key file and its database when they are missing.

    Raises:
        StoreError: the database or the master key can not be used; the message says why.
    """
    url = settings.resolved_database_url
    parsed = parse_url(url)  # before anything is made
    if create:
        _make_folder(settings.data_dir)
    elif parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").exists():
        raise StoreUnavailable(
            f"There is no database {parsed.database}. Name the data folder with "
            "--data-dir or PENNAME_DATA_DIR; 'penname keys create' makes one."
        )
    keyring = Keyring.load(
        settings.master_key,
        settings.data_dir.absolute() / "master.key",
        previous=settings.previous_master_keys.replace(",", " ").split(),
        create=create,
    )
    db = Database(url, keyring)
    db.upgrade()
    return db


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreUnavailable(
            f"The data folder {folder} cannot be used ({error.strerror}). Name another with "
            "--data-dir or PENNAME_DATA_DIR."
        ) from None


def build_services(settings: Settings) -> Services:
    """Build everything that a request handler may use."""
    db = open_database(settings)
    return Services(
        settings=settings,
        db=db,
        keys=KeyStore(db),
        tenants=TenantStore(db),
        sessions=SessionStore(db, ttl=settings.session_ttl_hours * _HOUR),
        responses=ResponseStore(db, ttl=settings.session_ttl_hours * _HOUR),
        files=FileStore(db),
        documents=DocumentStore(db),
        vectors=VectorIndex(db, settings.data_dir.absolute() / "vectors"),
        detector=build_detector(settings),
        encoder=MiniLmEncoder(),
        workers=ThreadPoolExecutor(settings.worker_threads, thread_name_prefix="penname-worker"),
        ingestion=ThreadPoolExecutor(
            settings.ingestion_threads, thread_name_prefix="penname-ingest"
        ),
    )


def embedding_folder() -> Path:
    """Return the folder of the converted word vectors, in the cache."""
    return cache_folder() / "glove-6b-50d"


def _quiet(_step: str, _share: float) -> None:
    """The progress of what is there already."""


def load_embedding(progress: Callable[[str, float], None] | None = None) -> Embedding:
    """Load φ; convert it from the wheel on first use."""
    from privacy.pools.build import ensure_embedding

    return ensure_embedding(embedding_folder(), progress or _quiet)


def resolve_policy(settings: Settings, config: ServerConfig) -> Policy:
    """Return the policy in force: the file's, else the setting's; retrieval may be replaced."""
    policy = load_policy(config.policy or settings.policy)
    if config.retrieval is not None:
        policy = policy.model_copy(update={"retrieval": config.retrieval})
    return policy


def build_pipeline(
    services: Services,
    config: ServerConfig,
    *,
    client: httpx.AsyncClient | None = None,
    router: Router | None = None,
    rng: Randomness | None = None,
    events: EventBus | None = None,
) -> Pipeline:
    """Build the pipeline of a configuration.

    Raises:
        ConfigurationError, PolicyError, PoolError: the message says what to mend.
    """
    settings = services.settings
    http = client or make_client(
        timeout=settings.upstream_timeout, connect_timeout=settings.upstream_connect_timeout
    )
    pools = PoolSet.load()
    embedding: Embedding = load_embedding()
    pools.check_embedding(embedding)
    models = router or build_router(
        config.model_list,
        http,
        timeout=settings.upstream_timeout,
        threads=settings.local_model_threads,
    )
    return Pipeline(
        services,
        models,
        resolve_policy(settings, config),
        pools,
        embedding,
        rng or SystemRandomness(),
        events or EventBus(),
    )
