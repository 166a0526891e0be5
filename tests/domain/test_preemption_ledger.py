"""The ledger of a fleet that changed is patched, and the same as one made anew."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sizing.domain.fleet import Fleet
from sizing.domain.preemption.ledger import Ledger, ledger, ledger_of
from tests.domain.strategies import Cluster, clusters


def assert_same(patched: Ledger, anew: Ledger) -> None:
    for column in fields(Ledger):
        one, other = getattr(patched, column.name), getattr(anew, column.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other), column.name
        else:
            assert one == other, column.name


@given(cluster=clusters(), data=st.data())
def test_any_changes_leave_the_patched_ledger_equal_to_one_made_anew(
    cluster: Cluster, data: st.DataObject
) -> None:
    fleet = Fleet.build(cluster.nodes, cluster.models, cluster.replicas)
    ledger(fleet)
    names = sorted(fleet.replicas)
    away: dict[str, object] = {}
    for _ in range(data.draw(st.integers(1, 4))):
        gone = set(data.draw(st.lists(st.sampled_from(names), max_size=3))) if names else set()
        back = [replica for replica in cluster.replicas if replica.name in away and data.draw(st.booleans())]
        away = dict.fromkeys({*away, *gone} - {replica.name for replica in back})
        fleet = fleet.with_replicas(removed=gone, added=back)
        if data.draw(st.booleans()):
            assert_same(ledger(fleet), ledger_of(fleet, fleet.replicas))
    assert_same(ledger(fleet), ledger_of(fleet, fleet.replicas))
