"""Several processes write the inventory at once by several ways: in turn, or refused; never by halves."""

from __future__ import annotations

import pytest

from sizing.models import Node
from tests import builders
from tests.admin.cluster import person
from tests.faults import writing
from tests.faults.racing import together

pytestmark = pytest.mark.database


def test_loads_imports_and_drains_at_once_leave_each_state_whole(quiet_database: dict[str, str]) -> None:
    person("boss", superuser=True)
    met = together(5, quiet_database, "all at once")
    for loader in met[:2]:
        assert set(loader) == {"loaded"}, met
    # A list brought in goes through or meets what it cannot join; a drain is asked again where rows changed.
    assert set(met[2]) <= {"brought", "400 invalid", "409 conflict"}, met
    assert met[2]["brought"] > 0, met
    assert set(met[3]) <= {"200", "302"}, met
    assert set(met[4]) == {"whole"}, met


def test_two_who_add_to_what_they_read_lose_nothing(quiet_database: dict[str, str]) -> None:
    person("boss", superuser=True)
    builders.node(writing.COUNTED, gpus=1)
    Node.objects.update(cost_per_hour=0)
    met = together(4, quiet_database, "counting")
    api, form = met[::2], met[1::2]
    assert all(set(one) <= {"200", "409"} for one in api), met
    assert all(set(one) <= {"200", "302"} for one in form), met
    saved = sum(one.get("200", 0) for one in api) + sum(one.get("302", 0) for one in form)
    assert saved >= writing.LEAST, met
    assert Node.objects.get().cost_per_hour == saved, met
