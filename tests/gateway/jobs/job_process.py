"""A supervisor in a process of its own, to be killed: ``job_process.py DATA_DIR MODELS_DIR``."""

import sys
import threading
from pathlib import Path
from typing import Any

from connectors.jobs.local import LocalEngine
from gateway.jobs.supervisor import Supervisor
from gateway.settings import Settings
from store.crypto import Keyring
from store.database import Database
from store.files import FileStore

MASTER = bytes(range(32))


def settings_for(data_dir: Path, models_dir: Path, **more: Any) -> Settings:
    values = {"job_lease_seconds": 3.0, "training_epsilon": 50.0, "training_delta": 1e-3, **more}
    return Settings(data_dir=data_dir, models_dir=models_dir, **values)


def open_db(data_dir: Path) -> Database:
    db = Database(f"sqlite:///{data_dir}/penname.db", Keyring(MASTER))
    db.upgrade()
    return db


def main() -> None:
    data_dir, models_dir = map(Path, sys.argv[1:3])
    db = open_db(data_dir)
    settings = settings_for(data_dir, models_dir)
    Supervisor(settings, db, FileStore(db), LocalEngine(), poll_seconds=0.1).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
