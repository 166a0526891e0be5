"""A broker that is a server of its own: how many messages wait there, and that it is away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from celery import current_app
from django.conf import LazySettings

from sizing import tasks
from sizing.services.watching import broker
from sizing.services.watching.broker import Broker
from tests.services.servers import NoServer, RabbitMq, Redis, Server


@pytest.fixture(params=[Redis, RabbitMq])
def server(
    request: pytest.FixtureRequest, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    monkeypatch.setattr(broker, "LOOKED_AT_EVERY_S", -1)
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = {}
    app: Any = current_app
    try:
        with request.param() as started:
            before = {name: app.conf[name] for name in ("broker_url", "broker_transport")}
            app.conf.update(broker_url=started.url, broker_transport=None)
            yield started
            app.conf.update(before)
    except NoServer as missing:
        pytest.skip(str(missing))


def test_messages_are_counted_by_queue_until_the_broker_is_away(server: Server) -> None:
    none = dict.fromkeys(("desk", "measuring", "sync"), 0)
    assert broker.look() == Broker(up=True, messages=none)
    task: Any = tasks.run_refresh
    with current_app.connection_for_write() as connection:
        for number in range(3):
            task.apply_async((number,), connection=connection)
    assert broker.look() == Broker(up=True, messages=none | {"measuring": 3})
    server.stop()
    assert broker.look() == Broker(up=False)
