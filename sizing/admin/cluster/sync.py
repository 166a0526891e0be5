"""The sync with the live cluster: how it goes, and since when it does not."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from sizing.admin.cluster import shown
from sizing.admin.cluster.may import may_import, may_look
from sizing.admin.page import PageAdmin
from sizing.models import ClusterSync
from sizing.syncing import state
from sizing.syncing.state import Look
from sizing.templatetags.desk import age

SETTINGS = (
    ("KUBERNETES=in-cluster", "the cluster that the desk runs in, by its pod's service account"),
    ("KUBERNETES=kubeconfig", "the cluster of a kubeconfig"),
    ("KUBECONFIG=PATH", "which kubeconfig; ~/.kube/config where it is left out"),
    ("KUBERNETES_CONTEXT=NAME", "which of its contexts; its current one where it is left out"),
)
"""What turns the sync on, in the environment of all of the desk's processes."""

SIGNS = {"off": "○", "waiting": "…", "listing": "▶", "watching": "✓", "failing": "✕", "missing": "✕"}
LOOKS = {
    "off": "queued",
    "waiting": "queued",
    "listing": "running",
    "watching": "done",
    "failing": "failed",
    "missing": "failed",
}
"""The class that colors a state."""


class ClusterSyncAdmin(PageAdmin):
    """There is one sync, so its list is its page."""

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return ()  # the page says it all in its own words

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_look(request)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = ClusterSync.objects.defer("pods_seen").filter(pk=state.ROW).first()
        return found or ClusterSync(pk=state.ROW, state=ClusterSync.State.OFF)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return self.change_view(request, str(state.ROW), extra_context=extra_context)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("live/", view(self.live), name="sizing_clustersync_live"),
            path("now/", view(self.now), name="sizing_clustersync_now"),
            *super().get_urls(),
        ]

    def page_part(self, request: HttpRequest, row: ClusterSync) -> dict[str, Any]:
        """What the page says of the sync; the same whether it is opened or followed."""
        now = timezone.now()
        look = state.look(now)
        report = row.report if look.configured else {}
        asked = look.requested_at is not None and (
            look.listed_at is None or look.requested_at > look.listed_at
        )
        return {
            "title": "Cluster sync",
            "subtitle": None,
            "sync": look,
            "sign": SIGNS[look.state],
            "look": LOOKS[look.state],
            "sentence": sentence(look, now),
            "problem": problem(look, now),
            "facts": facts(look, now),
            "figures": figures(look),
            "changes": shown.changes_of(row.changes) if look.changed_at else [],
            "changed": _moment(look.changed_at, now),
            "report": report,
            "warnings": report.get("warnings", {}),
            "settings": SETTINGS,
            "asked": asked,
            "may_sync": look.configured and may_import(request),
            "key": f"{look.state}-{asked}-{look.failures}",
            "report_key": f"{look.listed_at}-{look.changed_at}",
            "show_delete": False,
            "show_history": False,
        }

    def live(self, request: HttpRequest) -> HttpResponse:
        """The parts of the page that change, for the script that follows it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {**self.page_part(request, self.get_object(request, "")), "opts": self.opts}
        return TemplateResponse(request, "admin/sizing/clustersync/live.html", context)

    def now(self, request: HttpRequest) -> HttpResponse:
        """Ask for a fresh list."""
        if not may_import(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if state.look().configured:
            state.request_now()
            self.message_user(request, "A fresh list is asked for.", messages.SUCCESS)
        else:
            self.message_user(request, "The sync is off; nothing was asked for.", messages.WARNING)
        return HttpResponseRedirect(reverse("admin:sizing_clustersync_changelist"))


def sentence(look: Look, now: datetime) -> str:
    """How the sync goes, in one sentence."""
    if not look.configured:
        return "The sync with a live cluster is off."
    if look.state == "missing":
        return "No worker runs the sync."
    seen = (
        f"the cluster was seen {age(look.seen_age_s)} ago" if look.seen_at else "the cluster was never seen"
    )
    if look.state == "failing":
        since = f" for {_age(look.failing_since, now)}" if look.failing_since else ""
        return f"The sync has failed{since}; {seen}."
    if look.state == "watching":
        return f"The inventory follows the cluster: it was seen {age(look.seen_age_s)} ago."
    if look.state == "listing":
        return f"The cluster is being listed; {seen}."
    return f"The sync waits for a worker; {seen}."


def problem(look: Look, now: datetime) -> str:
    """What an operator has to see to; empty where there is nothing."""
    lines = []
    if look.error and look.failing_since:
        tries = f"{look.failures} in a row" if look.failures > 1 else "once"
        doing = f" {look.error_in}" if look.error_in else ""
        ago = f", last {_age(look.failed_at, now)} ago" if look.failed_at else ""
        lines.append(f"Failed{doing}, {tries}{ago}: {look.error}.")
    if look.state == "missing":
        lines.append("Start a worker of the queue sync; `manage.py up` has one.")
    if look.stale:
        lines.append("The cluster's nodes count as stale until it is seen again: nothing new fits on them.")
    return " ".join(lines)


def facts(look: Look, now: datetime) -> list[tuple[str, str]]:
    """Name and value of what is to be known, without what there is not."""
    if not look.configured:
        return []
    waits = look.next_try_at is not None and look.next_try_at > now
    next_try = f"in {age((look.next_try_at - now).total_seconds())}" if waits and look.next_try_at else ""
    found = [
        ("server", look.server),
        ("last list", _moment(look.listed_at, now)),
        ("last seen", _moment(look.seen_at, now)),
        ("last change", _moment(look.changed_at, now)),
        ("failing since", _moment(look.failing_since, now)),
        ("next try", next_try),
    ]
    return [(name, value) for name, value in found if value]


def figures(look: Look) -> list[tuple[str, str]]:
    """The numbers of a sync that has listed the cluster once."""
    if look.listed_at is None:
        return []
    return [
        ("nodes", f"{look.nodes:,}"),
        ("pods", f"{look.pods:,}"),
        ("events", f"{look.events:,}"),
        ("fresh lists", f"{look.relists:,}"),
    ]


def _moment(moment: datetime | None, now: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC, {_age(moment, now)} ago" if moment else ""


def _age(moment: datetime | None, now: datetime) -> str:
    return age((now - moment).total_seconds()) if moment else ""
