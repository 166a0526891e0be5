"""What waits for a worker, and how the runs of the last day ended: from the rows, which are the truth."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Q, QuerySet
from django.utils import timezone

from sizing.models import BenchImport, ClusterImport, Refresh

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits in a queue. `oldest_s`: for how long the first one has; 0 where there is none."""

    queue: str
    number: int
    oldest_s: float


def waiting() -> list[Waiting]:
    """By queue. Three queries."""
    now = timezone.now()
    lists = Q(state=ClusterImport.State.QUEUED) | Q(
        state=ClusterImport.State.IMPORTING, heartbeat_at__isnull=True
    )
    of_desk = [
        _first(BenchImport.objects.filter(state=BenchImport.State.QUEUED)),
        _first(ClusterImport.objects.filter(lists)),
    ]
    of_measuring = [_first(Refresh.objects.filter(state=Refresh.State.QUEUED))]
    return [_waiting("desk", of_desk, now), _waiting("measuring", of_measuring, now)]


def _first(
    rows: QuerySet[BenchImport] | QuerySet[ClusterImport] | QuerySet[Refresh],
) -> tuple[int, datetime | None]:
    found = rows.order_by().aggregate(number=Count("pk"), first=Min("queued_at"))
    return found["number"], found["first"]


def _waiting(queue: str, found: list[tuple[int, datetime | None]], now: datetime) -> Waiting:
    first = min((moment for _, moment in found if moment is not None), default=now)
    return Waiting(queue, sum(number for number, _ in found), max((now - first).total_seconds(), 0.0))


def of_last_day() -> dict[str, int]:
    """How many of the refreshes that were asked for within a day are in each state. One query."""
    rows = Refresh.objects.filter(queued_at__gt=timezone.now() - DAY).order_by()
    counts = dict(rows.values_list("state").annotate(number=Count("pk")))
    return {state: counts.get(state, 0) for state in Refresh.State.values}
