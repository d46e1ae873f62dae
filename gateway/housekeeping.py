"""What has to happen now and then, whoever asks or not."""

import asyncio
import logging

from gateway.services import Services
from gateway.work import in_worker
from store.errors import StoreError

_log = logging.getLogger(__name__)


async def keep_house(services: Services) -> None:
    """Forget the sessions whose time to live is over, at each interval, until cancelled."""
    while True:
        await asyncio.sleep(services.settings.housekeeping_minutes * 60)
        try:
            gone = await in_worker(services.ingestion, services.sessions.expire)
        except StoreError as error:
            _log.warning("sessions could not be expired: %s", error)
        except RuntimeError:  # the threads are shutting down
            return
        else:
            if gone:
                _log.info("forgot %d sessions that were out of use", gone)
