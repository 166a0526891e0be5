"""Redis as the message queue: a broker that goes away does not end a worker that is at work.

Kombu wants to put back what was taken and not done when it closes a channel, and Celery to acknowledge what
is done later: both fail where the connection was lost, and the worker ends with all that it is at.
"""

from typing import Any

from kombu.transport import redis


class QoS(redis.QoS):
    """Leaves to the visibility timeout what a lost connection held.

    Nothing waits for such a message: the rows say what is to be done, and the next sweep wakes a worker.
    """

    restore_at_shutdown = False

    def ack(self, delivery_tag: Any) -> None:
        if not self.channel.closed:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: Any, requeue: bool = False) -> None:
        if not self.channel.closed:
            super().reject(delivery_tag, requeue)


class Channel(redis.Channel):
    QoS = QoS


class Transport(redis.Transport):
    """Selected by the setting ``broker_transport``."""

    Channel = Channel
