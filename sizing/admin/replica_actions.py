"""What may be done with replicas of the list; each action says first what it will change."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from sizing.admin import draining
from sizing.admin.base import DeskModelAdmin
from sizing.admin.confirming import missing
from sizing.admin.draining import plural
from sizing.admin.measured import asking
from sizing.domain.specs import SERVING_STATES
from sizing.models import Replica


class ReplicaActions(DeskModelAdmin):
    """The actions of the list of replicas."""

    actions = ("refresh_now", "mark_draining", "mark_ready", "mark_benchable", "unmark_benchable")

    def has_refresh_permission(self, request: HttpRequest) -> bool:
        return asking.may_ask(request)

    @admin.action(description="Refresh now: measure on their models' own profiles", permissions=["refresh"])
    def refresh_now(self, request: HttpRequest, queryset: QuerySet[Replica]) -> HttpResponse | None:
        replicas = queryset.select_related("variant__model__default_profile").order_by("name")
        return asking.refresh_action(self, request, asking.wishes_of_replicas(list(replicas)))

    @admin.action(description="Mark draining: they are on their way out", permissions=["change"])
    def mark_draining(self, request: HttpRequest, queryset: QuerySet[Replica]) -> HttpResponse | None:
        changing = _replicas(queryset).filter(state__in=SERVING_STATES)
        number = changing.count()
        if not number:
            self._nothing(request, queryset, "no selected replica is ready or starting")
            return None
        return self.change_all(
            request,
            changing,
            {"state": Replica.State.DRAINING},
            done="marked draining",
            line=draining.line,
            effects=draining.effects(changing),
            action="mark_draining",
            title=f"Mark {plural(number, 'replica')} draining?",
            note=draining.NOTE + draining.kept_note(changing, "delete the pod or scale down instead"),
            button="Yes, mark",
        )

    @admin.action(description="Mark ready: draining ones stay after all", permissions=["change"])
    def mark_ready(self, request: HttpRequest, queryset: QuerySet[Replica]) -> HttpResponse | None:
        changing = _replicas(queryset).filter(state=Replica.State.DRAINING)
        number = changing.count()
        if not number:
            self._nothing(request, queryset, "no selected replica is draining")
            return None
        return self.change_all(
            request,
            changing,
            {"state": Replica.State.READY},
            done="marked ready",
            line=lambda replica: f"{replica.name} ({replica.variant.model.name}): draining → ready",
            action="mark_ready",
            title=f"Mark {plural(number, 'replica')} ready?",
            note="They count as running again." + draining.kept_note(changing, "see what the pod says"),
            button="Yes, mark",
        )

    @admin.action(description="Mark benchable: measurements may load them", permissions=["change"])
    def mark_benchable(self, request: HttpRequest, queryset: QuerySet[Replica]) -> HttpResponse | None:
        return self._set_benchable(request, queryset, True)

    @admin.action(description="Unmark benchable: measurements leave them alone", permissions=["change"])
    def unmark_benchable(self, request: HttpRequest, queryset: QuerySet[Replica]) -> HttpResponse | None:
        return self._set_benchable(request, queryset, False)

    def _set_benchable(
        self, request: HttpRequest, queryset: QuerySet[Replica], benchable: bool
    ) -> HttpResponse | None:
        done = "benchable" if benchable else "not benchable"
        changing = _replicas(queryset).exclude(benchable=benchable)
        number = changing.count()
        if not number:
            self._nothing(request, queryset, f"all selected replicas are {done} already")
            return None

        def line(replica: Any) -> str:
            no_endpoint = "" if replica.endpoint else ", no endpoint"
            return f"{replica.name} ({replica.variant.model.name}, {replica.state}{no_endpoint}) → {done}"

        return self.change_all(
            request,
            changing,
            {"benchable": benchable},
            done=done,
            line=line,
            action="mark_benchable" if benchable else "unmark_benchable",
            title=f"Mark {plural(number, 'replica')} as {done}?",
            note=(
                "A measurement puts a benchable replica under full load; whoever it serves will notice."
                if benchable
                else "No measurement will touch them."
            ),
            button="Yes, mark" if benchable else "Yes, unmark",
        )

    def _nothing(self, request: HttpRequest, selected: QuerySet[Replica], why: str) -> None:
        said = f"Nothing to change: {why}.{missing(request, selected)}"
        self.message_user(request, said, messages.INFO)


def _replicas(queryset: QuerySet[Replica]) -> QuerySet[Replica]:
    """The selected ones by name, without what the list adds to them."""
    selected = Replica.objects.filter(pk__in=queryset.order_by().values("pk"))
    return selected.order_by("name").select_related("variant__model")
