"""Fine-tuned models in this process: loaded at first use, answering without any provider."""

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from connectors.router import Router
from gateway.errors import ApiError, bad_request, no_model, unavailable
from gateway.jobs.bases import LocalSite, UnknownBase, base_path
from gateway.services import Services
from learning.methods.base import Answer, MethodError, Tuned, Unanswerable
from learning.methods.registry import UnknownMethod, method
from store.errors import NotFound
from store.tuned import TunedModel, TunedModelStore

PREFIX: Final = "ft:"
_KEPT: Final = 4


def is_tuned(name: str, router: Router) -> bool:
    """Say whether a name is that of a model tuned here; providers call theirs ``ft:...``, too."""
    return name.startswith(PREFIX) and router.get(name) is None


class TunedModels:
    """The tuned models of all tenants; the last few used stay in memory."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._store = TunedModelStore(services.db)
        self._loaded: OrderedDict[str, Tuned] = OrderedDict()
        # A thread of their own: waiting here, requests would take the threads of everybody's chats.
        self.workers = ThreadPoolExecutor(1, "penname-tuned")
        # One at a time: models are not thread-safe, and two at once would only fight for the cores.
        self._lock = threading.Lock()

    def list(self, tenant_id: str) -> list[TunedModel]:
        """Return a tenant's models."""
        return self._store.list(tenant_id)

    def get(self, tenant_id: str, name: str) -> TunedModel:
        """Return a model's record.  Raises ApiError 404."""
        try:
            return self._store.get(tenant_id, name)
        except NotFound:
            raise no_model() from None

    def answer(self, tenant_id: str, name: str, body: Mapping[str, Any]) -> Answer:
        """Answer a chat request with a tuned model.

        Raises:
            ApiError: 404 for an unknown model, 503 when it cannot be loaded or its file was deleted, 400
                when it cannot answer these messages.
        """
        model = self.get(tenant_id, name)
        with self._lock:
            loaded = self._in_memory(model)
            self._loaded.move_to_end(model.id)
            while len(self._loaded) > _KEPT:
                self._loaded.popitem(last=False)
            try:
                return loaded.answer(body["messages"], body)
            except Unanswerable as error:
                raise bad_request(f"messages: {error}", "messages") from None

    def delete(self, tenant_id: str, name: str) -> None:
        """Remove a model and its values.  Raises ApiError 404."""
        model = self._store.delete(tenant_id, name)
        if model is None:
            raise no_model()
        self._services.files.delete(tenant_id, model.file_id)
        with self._lock:
            self._loaded.pop(model.id, None)

    def _in_memory(self, model: TunedModel) -> Tuned:
        """Return a model, loaded if it was not; one whose values were deleted is let go."""
        try:
            self._services.files.get(model.tenant_id, model.file_id)
            if model.id not in self._loaded:
                self._loaded[model.id] = self._load(model)
        except NotFound:
            self._loaded.pop(model.id, None)
            raise unavailable("The file of this model was deleted.", "model_damaged") from None
        return self._loaded[model.id]

    def _load(self, model: TunedModel) -> Tuned:
        try:
            content = self._services.files.content(model.tenant_id, model.file_id)
            models_dir = self._services.settings.resolved_models_dir
            base = base_path(model.base, models_dir)
            with tempfile.TemporaryDirectory(prefix="penname-") as folder:
                package = Path(folder, "delta.safetensors")
                package.write_bytes(content)
                return method(model.method).load(package, base, LocalSite(models_dir))
        except (UnknownBase, UnknownMethod, MethodError) as error:
            raise unavailable(str(error), "model_not_loadable") from None
        except (ApiError, NotFound):
            raise
        except Exception as error:
            raise unavailable(
                f"The model cannot be loaded ({type(error).__name__}).", "model_not_loadable"
            ) from None
