"""The one table of settings: environment variables ``PENNAME_*``, each with default and help."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

_PREFIX: Final = "PENNAME_"
# Read elsewhere: the folder of models, and the bearer keys of `penname ppft`.
_NO_SETTINGS: Final = frozenset({"PENNAME_CACHE", "PENNAME_PPFT_KEYS"})


class Settings(BaseSettings):
    """What an operator can set from the environment; docs/settings.md is generated from it."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_ignore_empty=True, extra="ignore")

    data_dir: Path = Field(
        Path(".penname"),
        description="Folder of the SQLite file, the key file and the index caches.",
    )
    config: Path | None = Field(
        None,
        description="Configuration file of `penname serve`; its `database_url`, where it has one, holds "
        "for every command and before `PENNAME_DATABASE_URL`.",
    )
    database_url: str = Field(
        "", repr=False, description="SQLAlchemy URL; empty means SQLite in the data folder."
    )
    master_key: str = Field(
        "",
        repr=False,
        description="Base64 of 32 bytes that wraps every data key; empty means a 0600 key file in "
        "the data folder.",
    )
    previous_master_keys: str = Field(
        "",
        description="Master keys that are being rotated out, separated by commas; see 'penname keys "
        "rotate-master'.",
    )
    policy: str = Field(
        "balanced", description="Default policy: a name of policies/defaults or the path of a file."
    )
    host: str = Field("127.0.0.1", description="Address that the server binds.")
    port: int = Field(8484, ge=0, le=65535, description="Port that the server binds; 0 picks one.")
    max_body_bytes: int = Field(
        16 * 1024 * 1024, ge=1024, description="Largest JSON request body, in bytes."
    )
    max_upload_bytes: int = Field(
        50 * 1024 * 1024, ge=1024, description="Largest uploaded file, in bytes."
    )
    upstream_timeout: float = Field(
        120.0, gt=0, description="Seconds without a byte from the provider before a 504."
    )
    upstream_connect_timeout: float = Field(
        10.0, gt=0, description="Seconds to connect to the provider."
    )
    request_timeout: float = Field(
        600.0,
        gt=0,
        description="Seconds that a request may take in all, preparation and answer; then a 503 (not "
        "forwarded, not charged) or a 504.",
    )
    worker_threads: int = Field(
        4, ge=1, description="Threads for detection, substitution and storage."
    )
    ingestion_threads: int = Field(
        1, ge=1, description="Threads that read, cut and encode documents beside the requests."
    )
    ner_threads: int = Field(1, ge=1, description="Threads inside one run of the NER model.")
    cache_entries: int = Field(
        4096, ge=1, description="Texts whose detection results are kept, by content hash."
    )
    session_ttl_hours: float = Field(
        24.0 * 30, gt=0, description="Hours after the last use when a session is forgotten."
    )
    housekeeping_minutes: float = Field(
        10.0, gt=0, description="Minutes between two looks for sessions to be forgotten."
    )
    local_model_threads: int = Field(1, ge=1, description="Threads of the local chat model.")
    job_engine: Literal["local", "ray"] = Field(
        "local", description="Where fine-tuning jobs run: local (a subprocess) or ray."
    )
    jobs_at_once: int = Field(
        1, ge=0, description="Fine-tuning jobs that this process runs side by side; 0 runs none."
    )
    jobs_dir: Path | None = Field(
        None,
        description="Folder of running jobs; empty means `jobs` in the data folder. Gateways that "
        "share a database, and Ray nodes, must share it.",
    )
    models_dir: Path | None = Field(
        None,
        description="Folder of further base models, one Hugging Face folder each; empty means "
        "`models` in the data folder.",
    )
    job_threads: int = Field(
        1, ge=1, description="CPU threads of each process of a fine-tuning job."
    )
    job_processes: int = Field(
        1,
        ge=1,
        le=64,
        description="Processes of one fine-tuning job, on one machine: each takes its share of every "
        "batch, on a GPU of its own where there are GPUs.",
    )
    job_gpus: float = Field(
        0.0, ge=0, description="GPUs of each process of a fine-tuning job on Ray."
    )
    job_disk_bytes: int = Field(
        2 * 1024**3, ge=1024 * 1024, description="Most that one job's folder may take, in bytes."
    )
    job_lease_seconds: float = Field(
        15.0, ge=2, description="Seconds after which another gateway takes over a silent one's job."
    )
    job_stall_minutes: float = Field(
        60.0,
        gt=0,
        description="Minutes without a step or a report after which a worker counts as hung: it is killed, "
        "and the job resumes from its last checkpoint.",
    )
    ray_address: str = Field(
        "http://127.0.0.1:8265", description="Dashboard of the Ray cluster for job_engine ray."
    )
    training_epsilon: float = Field(
        8.0,
        gt=0,
        description="Privacy budget (epsilon) of one data set over all jobs on it that "
        "train with DP-SGD.",
    )
    training_delta: float = Field(
        1e-5, gt=0, lt=1, description="Delta at which training budgets hold."
    )
    ppft_training_epsilon: float = Field(
        5000.0,
        gt=0,
        description="Budget (Euclidean epsilon of the longest record, account ppft) of one data set over "
        "all jobs of the method ppft on it; never added to training_epsilon.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Level of the log: DEBUG, INFO, WARNING or ERROR."
    )

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_capitals(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @cached_property
    def resolved_database_url(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir.absolute() / 'penname.db'}"

    @cached_property
    def resolved_jobs_dir(self) -> Path:
        return (self.jobs_dir or self.data_dir / "jobs").absolute()

    @cached_property
    def resolved_models_dir(self) -> Path:
        return (self.models_dir or self.data_dir / "models").absolute()


def misspelt(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return environment variables that look like a setting and are none, each with the setting meant.

    Case does not count. A name unlike any setting is let be: `os.environ/NAME` in a configuration file may
    mean it.
    """
    known = {f"{_PREFIX}{field.upper()}" for field in Settings.model_fields} | _NO_SETTINGS
    unknown = sorted(
        name for name in names if name.upper().startswith("PEN") and name.upper() not in known
    )
    close = [(name, get_close_matches(name.upper(), known, 1, 0.85)) for name in unknown]
    return [(name, found[0]) for name, found in close if found]
