"""PodDisruptionBudgets become the minimum of the models whose pods they select."""

from __future__ import annotations

import pytest

from sizing.inventory.kubernetes.facts import BudgetFacts
from tests.kubernetes.facts import a_node, a_pod, mapped
from tests.kubernetes.test_mapping_replicas import lws


def budget(name="b", namespace="llm", match=None, **facts):
    return BudgetFacts(namespace, name, match={"app": "chat"} if match is None else match, **facts)


def minimums(pods, *budgets):
    found = mapped(
        [a_node("n1", 40), a_node("n2", 40)], pods, budgets={(b.namespace, b.name): b for b in budgets}
    )
    return {name: model.min_replicas for name, model in found.models.items()}, found.warnings


def chats(number=5, **facts):
    return [a_pod(f"chat-{n}", **({"labels": {"app": "chat"}} | facts)) for n in range(number)]


@pytest.mark.parametrize(
    ("facts", "least"),
    [
        ({"min_available": "2"}, 2),
        ({"min_available": "30%"}, 2),
        ({"min_available": "0"}, 0),
        ({"min_available": "9"}, 5),
        ({"max_unavailable": "1"}, 4),
        ({"max_unavailable": "50%"}, 2),
        ({"max_unavailable": "100%"}, 0),
        ({"min_available": "2", "desired_healthy": 3}, 3),
        ({"max_unavailable": "1", "frozen": True}, 5),
    ],
)
def test_a_budget_keeps_as_many_replicas_as_pods(facts, least):
    assert minimums(chats(), budget(**facts)) == ({"org/llama": least}, [])


def test_an_empty_selector_selects_every_pod_of_its_namespace():
    pods = [*chats(3), a_pod("elsewhere", namespace="lab", words=["--model", "org/other"])]
    assert minimums(pods, budget(match={}, min_available="2"))[0] == {"org/llama": 2, "org/other": 0}


@pytest.mark.parametrize(
    ("expression", "least"),
    [
        (("tier", "In", ("gold", "silver")), 1),
        (("tier", "NotIn", ("gold",)), 0),
        (("tier", "Exists", ()), 1),
        (("tier", "DoesNotExist", ()), 0),
        (("tier", "Near", ("gold",)), 0),
    ],
)
def test_expressions_select_as_well(expression, least):
    pods = chats(1, labels={"app": "chat", "tier": "gold"})
    found = minimums(pods, budget(expressions=(expression,), min_available="1"))
    assert found == ({"org/llama": least}, [])


def test_the_minimums_of_several_budgets_add_up():
    pods = [*chats(2), *(a_pod(f"x-{n}", labels={"app": "x"}) for n in range(3))]
    first, second = budget(min_available="1"), budget("c", match={"app": "x"}, min_available="2")
    least, warnings = minimums(pods, first, second)
    assert least == {"org/llama": 3}
    assert warnings == [
        'the disruption budget "llm/b" selects 2 of 5 replicas of model "org/llama"; its minimum counts'
        " all of them",
        'the disruption budget "llm/c" selects 3 of 5 replicas of model "org/llama"; its minimum counts'
        " all of them",
    ]


def test_groups_count_as_replicas_and_not_as_pods():
    labels = {"app": "chat"}
    pods = [lws(worker, "n1", group, 1) for group in range(3) for worker in range(2)]
    for pod in pods:
        pod.labels = pod.labels | labels
    assert minimums(pods, budget(min_available="3"))[0] == {"org/r1": 2}
    assert minimums(pods, budget(max_unavailable="2"))[0] == {"org/r1": 2}


def test_a_budget_over_several_models_says_so():
    pods = [*chats(2), a_pod("y", labels={"app": "chat"}, words=["--model", "org/y"])]
    least, warnings = minimums(pods, budget(min_available="2"))
    assert least == {"org/llama": 1, "org/y": 0}
    assert warnings == [
        'the disruption budget "llm/b" selects pods of 2 models ("org/llama", "org/y");'
        " each of them has the minimum that it would have if the others were not touched"
    ]


def test_a_budget_without_a_number_keeps_nothing_and_is_told():
    least, warnings = minimums(chats(1), budget(min_available="some"))
    assert least == {"org/llama": 0}
    assert warnings == [
        'the disruption budget "llm/b" says neither minAvailable nor maxUnavailable as a number or a'
        " percentage"
    ]


def test_pods_that_are_over_do_not_count():
    pods = [*chats(2), a_pod("old", labels={"app": "chat"}, phase="Failed")]
    assert minimums(pods, budget(min_available="2"))[0] == {"org/llama": 2}
