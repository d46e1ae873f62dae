"""One gateway on loopback, in front of a recording upstream, for all end-to-end tests."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from openai import OpenAI

sys.path.insert(0, str(Path(__file__).parent))

from e2e_upstream import Recording, recording_upstream

from connectors.router import LiteLlmParams, ModelEntry
from gateway.app import create_app
from gateway.bootstrap import build_pipeline, build_services
from gateway.config import ServerConfig
from gateway.services import Services
from gateway.settings import Settings


class Gateway:
    """A running gateway."""

    def __init__(self, url: str, key: str, services: Services, upstream: Recording) -> None:
        self.url = url
        self.key = key
        self.services = services
        self.upstream = upstream
        self._client = OpenAI(
            base_url=url, api_key=key, max_retries=0, _strict_response_validation=True
        )

    def client(self) -> OpenAI:
        return self._client


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("gateway"))
    services = build_services(settings)
    services.tenants.ensure("acme")
    key, _ = services.keys.create("client", "acme")
    with recording_upstream() as upstream:
        config = ServerConfig(
            model_list=[
                ModelEntry(
                    model_name="test-model",
                    litellm_params=LiteLlmParams(
                        model="openai/upstream-model", api_base=upstream.url, api_key="sk-upstream"
                    ),
                )
            ],
        )
        app = create_app(services, build_pipeline(services, config))
        sock = socket.socket(proto=socket.IPPROTO_TCP)  # else asyncio leaves Nagle on
        sock.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        running = Gateway(f"http://127.0.0.1:{sock.getsockname()[1]}/v1", key, services, upstream)
        yield running
        running.client().close()
        server.should_exit = True
        thread.join(15)
        sock.close()
    services.workers.shutdown(wait=True)
    services.db.close()
