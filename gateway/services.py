"""Everything a request handler may use, built once per process and found on ``app.state``."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from connectors.encoder import Encoder
from gateway.settings import Settings
from privacy.detection.engine import Detector
from store.database import Database
from store.documents import DocumentStore
from store.files import FileStore
from store.keys import KeyStore
from store.responses import ResponseStore
from store.sessions import SessionStore
from store.tenants import TenantStore
from store.vectors import VectorIndex


@dataclass
class Services:
    """The long-lived collaborators of the gateway."""

    settings: Settings
    db: Database
    keys: KeyStore
    tenants: TenantStore
    sessions: SessionStore
    responses: ResponseStore
    files: FileStore
    documents: DocumentStore
    vectors: VectorIndex
    detector: Detector
    encoder: Encoder
    workers: ThreadPoolExecutor
    ingestion: ThreadPoolExecutor

    def close(self) -> None:
        """End the threads, after what they are at; then close what they work on.

        What waits to be ingested is resumed at the next start.
        """
        for pool in (self.workers, self.ingestion):
            pool.shutdown(wait=True, cancel_futures=True)
        self.vectors.close()
        self.db.close()
