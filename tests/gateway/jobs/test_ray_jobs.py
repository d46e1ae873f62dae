"""Jobs on a real Ray cluster of two nodes on this machine; run by ``make test-ray``."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from job_bench import Bench
from jobs_gateway import CANARY

from connectors.jobs.base import EngineError
from connectors.jobs.ray import RayEngine
from gateway.jobs.supervisor import Supervisor
from store.job_rows import Job

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without and a node with a (logical) GPU."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_raylet_start_wait_time_s"] = "120"  # a busy machine needs more than Ray's 30
    from ray.cluster_utils import Cluster

    memory = 80 * 1024 * 1024
    made = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1,
            "num_gpus": 0,
            "include_dashboard": True,
            "object_store_memory": memory,
        },
    )
    made.gpu_node = made.add_node(num_cpus=2, num_gpus=1, object_store_memory=memory)
    yield made
    made.shutdown()


@pytest.fixture
def engine(cluster: Any) -> RayEngine:
    return RayEngine(f"http://{cluster.head_node.webui_url}", gpus=1, threads=1)


@pytest.fixture
def supervisor(bench: Bench, engine: RayEngine) -> Iterator[Supervisor]:
    made = Supervisor(bench.settings(job_engine="ray"), bench.db, bench.files, engine, 0.3)
    made.start()
    yield made
    made.stop()


def on_ray(bench: Bench, **more: Any) -> Job:
    bench.engine = "ray"
    return bench.create(**more)


def worker_of(folder: Path) -> psutil.Process:
    """The worker of a job's folder, whoever started it."""
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "learning.worker" in line and str(folder) in line:
            return process
    raise AssertionError("no worker runs")


def test_a_job_runs_where_the_gpu_is(
    bench: Bench, supervisor: Supervisor, engine: RayEngine, cluster: Any
) -> None:
    made = on_ray(bench)
    job = bench.until(made.id, lambda j: bool(j.handle))
    done = bench.until(made.id, lambda j: j.status == "succeeded", seconds=120)
    assert done.steps_taken == done.steps_total
    where = engine._call("get_job_info", job.handle).driver_node_id
    assert where == cluster.gpu_node.node_id
    logs = engine.logs(job.handle, bench.folder(made.id))
    assert CANARY not in logs


def test_a_killed_worker_resumes_and_a_cancel_ends_it(
    bench: Bench, supervisor: Supervisor, engine: RayEngine
) -> None:
    made = on_ray(bench, steps=20_000, checkpoint_every=20)
    folder = bench.folder(made.id)
    first = bench.until(made.id, lambda j: j.steps_done >= 20, seconds=120)
    worker_of(folder).kill()
    bench.until(made.id, lambda j: j.attempts == 2 and j.steps_done > first.steps_done + 40, 120)
    assert any("from step" in m and "step 0" not in m for m in bench.messages(made.id))
    worker = worker_of(folder)
    assert worker.environ()["CUDA_VISIBLE_DEVICES"] == "0"  # the only one that the node has
    assert "PENNAME_MASTER_KEY" not in worker.environ()
    bench.jobs.want("acme", made.id, "cancel", lambda _history: 0.0)
    done = bench.until(made.id, lambda j: j.status == "cancelled", seconds=60)
    assert done.steps_taken >= first.steps_taken
    deadline = time.monotonic() + 30
    while worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_job_of_two_processes(bench: Bench, cluster: Any) -> None:
    settings = bench.settings(job_engine="ray", job_processes=2)
    engine = RayEngine(f"http://{cluster.head_node.webui_url}", threads=1, processes=2)
    supervisor = Supervisor(settings, bench.db, bench.files, engine, 0.3)
    supervisor.start()
    try:
        made = on_ray(bench, steps=4)
        job = bench.until(made.id, lambda j: bool(j.handle))
        done = bench.until(made.id, lambda j: j.finished_at is not None, seconds=120)
        assert done.status == "succeeded", done.error
        assert done.steps_taken == done.steps_total == 4
        (last,) = bench.jobs.events("acme", made.id, limit=1)
        assert last.data["processes"] == 2
        assert last.data["bytes_reduced"] == 4 * 4 * last.data["trained_parameters"]
        # The head has one core: only the other node can take two processes.
        where = engine._call("get_job_info", job.handle).driver_node_id
        assert where == cluster.gpu_node.node_id
        assert CANARY not in engine.logs(job.handle, bench.folder(made.id))
    finally:
        supervisor.stop()


def test_an_unreachable_cluster_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="PENNAME_RAY_ADDRESS"):
        RayEngine("http://127.0.0.1:9").submit("ftjob-1", 1, tmp_path)
