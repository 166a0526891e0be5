"""What may be done with nodes of the list: cordon, uncordon, drain; each says first what it will change."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from sizing.admin import draining
from sizing.admin.base import CHANGES_SHOWN, DeskModelAdmin
from sizing.admin.confirming import CONFIRMED, missing, named
from sizing.admin.draining import plural
from sizing.models import Node, Replica
from sizing.models.locking import inventory_lock
from sizing.templatetags.desk import num


class NodeActions(DeskModelAdmin):
    """The actions of the list of nodes."""

    actions = ("cordon", "uncordon", "drain")

    @admin.action(description="Cordon: nothing new is placed there", permissions=["change"])
    def cordon(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        return self._set_schedulable(request, queryset, False)

    @admin.action(description="Uncordon: open for new replicas", permissions=["change"])
    def uncordon(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        return self._set_schedulable(request, queryset, True)

    def _set_schedulable(
        self, request: HttpRequest, queryset: QuerySet[Node], schedulable: bool
    ) -> HttpResponse | None:
        verb, done = ("uncordon", "open for new replicas") if schedulable else ("cordon", "cordoned")
        selected = _nodes(queryset)
        changing = selected.exclude(schedulable=schedulable).order_by("name")
        number = changing.count()
        already = selected.count() - number
        if not number:
            said = _nothing(request, selected, f"all selected nodes are {done} already")
            self.message_user(request, said, messages.INFO)
            return None
        note = (
            "Their free GPUs count as room again."
            if schedulable
            else "Replicas that run there stay; nothing new is counted as fitting."
        )
        if already:
            note += f" {num(already)} of the selected nodes {'is' if already == 1 else 'are'} {done} already."
        return self.change_all(
            request,
            changing,
            {"schedulable": schedulable},
            done=done,
            line=lambda node: f"{node.name}: {node_state(node)} → {done}, {held_words(node)}",
            action=verb,
            title=f"{verb.capitalize()} {plural(number, 'node')}?",
            note=note + draining.kept_note(changing, f"use kubectl {verb}"),
            button=f"Yes, {verb}",
        )

    def has_drain_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perms(("sizing.change_node", "sizing.change_replica"))

    @admin.action(description="Drain: cordon, and mark the replicas there draining", permissions=["drain"])
    def drain(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        selected = _nodes(queryset)
        cordoning = selected.filter(schedulable=True).order_by("name")
        marking = draining.on_nodes(selected)
        if request.POST.get(CONFIRMED) and self._drain(request, cordoning, marking):
            return None
        of, nodes, replicas = named(cordoning, marking), cordoning.count(), marking.count()
        if not of.names:
            why = "all selected nodes are cordoned already, and nothing serves there"
            self.message_user(request, _nothing(request, selected, why), messages.INFO)
            return None
        todo = [f"cordon {plural(nodes, 'node')}"] * (nodes > 0)
        todo += [f"mark {plural(replicas, 'replica')} draining"] * (replicas > 0)
        models = draining.effects(marking)
        changes = [f"{node.name}: {node_state(node)} → cordoned" for node in cordoning[:CHANGES_SHOWN]]
        lines = marking.prefetch_related("placements__gpu__node")[: max(CHANGES_SHOWN - len(changes), 0)]
        changes += [draining.line(replica) for replica in lines]
        hidden = nodes + replicas - len(changes)
        return self.confirmation(
            request,
            action="drain",
            title=f"Drain: {' and '.join(todo)}?",
            changes=changes,
            hidden=hidden,
            effects=models,
            note=draining.NOTE + draining.kept_note(selected, "use kubectl drain"),
            button="Yes, drain",
            of=of,
        )

    def _drain(self, request: HttpRequest, cordoning: QuerySet[Node], marking: QuerySet[Replica]) -> bool:
        """Do it and say so, where it is what was confirmed; else False, and nothing is done."""
        with inventory_lock():
            of = named(cordoning, marking)
            if not of.names or not of.confirmed(request):
                return False
            nodes, replicas = list(cordoning), list(marking)
            Node.objects.filter(pk__in=cordoning.order_by().values("pk")).update(schedulable=False)
            Replica.objects.filter(pk__in=marking.order_by().values("pk")).update(state="draining")
            self.log_all(request, nodes, "schedulable")
            self.log_all(request, replicas, "state")
        done = [f"{plural(len(nodes), 'node')} cordoned"] * bool(nodes)
        done += [f"{plural(len(replicas), 'replica')} marked draining"] * bool(replicas)
        stop = " Stop them where they run; then remove them here." if replicas else ""
        self.message_user(request, f"{', '.join(done)}.{stop}", messages.SUCCESS)
        return True


def _nodes(queryset: QuerySet[Node]) -> QuerySet[Node]:
    """The selected ones, without what the list adds to them."""
    return Node.objects.filter(pk__in=queryset.order_by().values("pk"))


def _nothing(request: HttpRequest, selected: QuerySet[Node], why: str) -> str:
    """That nothing is to be changed, and why; of nodes that are all gone, only that."""
    if not selected.exists():
        return "Nothing to change: the selected nodes are there no more."
    return f"Nothing to change: {why}.{missing(request, selected)}"


def node_state(node: Node) -> str:
    """What keeps a node closed, in words; `open` where nothing does."""
    closed = [
        word
        for word, applies in (
            ("not ready", not node.ready),
            ("cordoned", not node.schedulable),
            ("stale", node.stale),
        )
        if applies
    ]
    return ", ".join(closed) or "open"


def held_words(node: Any) -> str:
    """`3 of 8 GPUs held`; the list's rows know it."""
    gpus = node.gpus.all()
    return f"{sum(1 for gpu in gpus if gpu.holders)} of {len(gpus)} GPUs held"
