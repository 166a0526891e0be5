"""An answer computed again: the same on the inventory of then, whatever the cluster is now."""

from __future__ import annotations

import json
import zlib
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from sizing.models import Answer, KeptInventory, Node, Replica, ServedModel
from sizing.services import answers
from sizing.services.answers import Difference
from sizing.services.errors import DeskError
from tests import builders
from tests.answers.conftest import ask


def test_it_is_the_same_after_the_cluster_changed_and_time_went_by(llama: ServedModel, ada: User) -> None:
    batch = builders.variant(builders.model("batch", priority=-1), "tp4")
    builders.replica("batch-0", batch, Node.objects.get(name="gpu-a2"), (0, 1, 2, 3))
    llama.default_profile.refresh_every_h = 1  # type: ignore[union-attr]
    llama.default_profile.save()  # type: ignore[union-attr]
    pk = ask(ada, "6000", as_if="more_like:gpu-a2")
    Replica.objects.all().delete()
    Node.objects.all().delete()
    found = answers.replay(Answer.objects.get(pk=pk))
    assert found.result is not None
    assert [victim["replica"] for victim in found.result["preemption"]["victims"]] == ["batch-0"]
    assert (found.same, found.differences, found.error) == (True, (), "")


def test_it_says_what_differs_where_the_code_of_today_answers_otherwise(
    llama: ServedModel, ada: User
) -> None:
    ask(ada)
    row = Answer.objects.get()
    row.result |= {"needed": 4, "blocked": row.result["blocked"][:1]}
    found = answers.replay(row)
    assert not found.same
    first, *others = found.differences
    assert first == Difference("needed", 4, 5)
    assert [other.path for other in others] == [f"blocked[{i}]" for i in range(1, 1 + len(others))]
    assert {other.before for other in others} == {None}


def test_the_measurement_is_as_old_as_it_was_then(llama: ServedModel, ada: User) -> None:
    profile = llama.default_profile
    assert profile is not None
    profile.refresh_every_h = 24 * 30000
    profile.save()
    ask(ada)
    row = Answer.objects.get()
    assert row.result["measurement"]["stale"] is False
    row.asked_at = timezone.now() + timedelta(days=40000)
    assert [other.path for other in answers.replay(row).differences] == ["measurement.stale", "warnings[0]"]


@pytest.mark.parametrize("kept", [None, {"version": 99}])
def test_without_an_inventory_that_it_can_read_it_says_so(
    llama: ServedModel, ada: User, kept: dict[str, int] | None
) -> None:
    ask(ada)
    if kept is None:
        Answer.objects.update(inventory=None)
    else:
        KeptInventory.objects.update(body=zlib.compress(json.dumps(kept).encode()))
    with pytest.raises(DeskError) as refused:
        answers.replay(Answer.objects.get())
    assert (refused.value.status, refused.value.code) == (409, "conflict")
