"""A small fleet to ask about."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from sizing.models import Answer, ServedModel
from sizing.services import targets
from sizing.services.answers import Asker
from tests import builders
from tests.api.conftest import admin as admin
from tests.api.conftest import caller as caller

API = Answer.Channel.API


@pytest.fixture
def llama(db: None) -> ServedModel:
    """Two replicas run on gpu-a1, gpu-a2 has room for two more; one serves 1,000 tok/s on chat."""
    return small_fleet()


def small_fleet() -> ServedModel:
    model = builders.model("llama", default_profile=builders.profile())
    variant = builders.variant(model)
    builders.measurement(variant, model.default_profile, bound="edge", source="lab")  # type: ignore[arg-type]
    first = builders.node("gpu-a1")
    builders.replica("llama-0", variant, first, (0, 1, 2, 3))
    builders.replica("llama-1", variant, first, (4, 5, 6, 7))
    builders.node("gpu-a2")
    return model


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada")


def ask(user: User | None, tokens_per_sec: str = "5000", channel: Any = API, **more: Any) -> Any:
    """The id that an answer is kept by."""
    params = {"tokens_per_sec": [tokens_per_sec]} | {
        name: value if isinstance(value, list) else [value] for name, value in more.items()
    }
    return targets.ask(targets.parse_question("llama", params), Asker(channel, user)).get("answer_id")
