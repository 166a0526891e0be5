"""The admin site: its order, its home page, its sign-in."""

from __future__ import annotations

import logging
from typing import Any, cast

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.admin.models import CHANGE
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse

from sizing.domain.wording import plural
from sizing.models import history
from sizing.models.history import By, Event
from sizing.services import sign_in

logger = logging.getLogger(__name__)

# Group, its models (app label and model name) in the order in which an operator looks for them.
GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("fleet", "Fleet", ("sizing.node", "sizing.gpu", "sizing.replica", "sizing.inventoryload")),
    ("cluster", "Cluster", ("sizing.clusterimport", "sizing.clustersync", "sizing.mappingrule")),
    ("served", "What is served", ("sizing.servedmodel", "sizing.variant", "sizing.benchprofile")),
    ("measured", "Measured", ("sizing.measurement", "sizing.refresh", "sizing.benchimport")),
    ("wishes", "Wishes", ("sizing.target", "sizing.answer")),
    ("access", "Access", ("auth.user", "auth.group", "sizing.apitoken")),
)
IN_HEADER = (
    "sizing.servedmodel",
    "sizing.node",
    "sizing.replica",
    "sizing.measurement",
    "sizing.target",
    "sizing.refresh",
)


class DeskAutocomplete(AutocompleteJsonView):
    """Offers objects under the label that their own admin gives them."""

    def serialize_result(self, obj: Any, to_field_name: str) -> dict[str, str]:
        label = getattr(self.model_admin, "autocomplete_label", str)
        return {"id": str(getattr(obj, to_field_name)), "text": label(obj)}


class DeskAdminSite(admin.AdminSite):
    site_title = "Capacity desk"
    site_header = "Capacity desk"
    index_title = "Capacity desk"
    site_url = None
    # All lists are in the header and on the index; tables need the width.
    enable_nav_sidebar = False
    index_template = "admin/desk_index.html"
    app_index_template = "admin/desk_app_index.html"

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        # Here and not by decorators: Django imports this package while it makes its default site, and what
        # registers itself in that moment registers with a site that is then thrown away.
        from sizing.admin import (
            access,
            answers,
            catalog,
            cluster,
            gpus,
            imports,
            inventory,
            measured,
            nodes,
            replicas,
            wishes,
        )

        for model, model_admin in (
            *nodes.ADMINS,
            *gpus.ADMINS,
            *replicas.ADMINS,
            *catalog.ADMINS,
            *measured.ADMINS,
            *imports.ADMINS,
            *inventory.ADMINS,
            *cluster.ADMINS,
            *wishes.ADMINS,
            *answers.ADMINS,
            *access.ADMINS,
        ):
            self.register(model, model_admin)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Models in the operators' groups, not by Django app; what no group names stays with its app."""
        found: dict[str, Any] = {}
        rest: list[Any] = []
        grouped = {name for _key, _title, names in GROUPS for name in names}
        for label, app in sorted(self._build_app_dict(request, app_label).items()):
            others = []
            for model in app["models"]:
                name = f"{label}.{model['object_name'].lower()}"
                model["add_label"] = getattr(self._registry[model["model"]], "add_label", "")
                if name in grouped:
                    found[name] = model
                else:
                    others.append(model)
            if others:
                rest.append({**app, "models": others})
        groups = []
        for key, title, names in GROUPS:
            models = [found[name] for name in names if name in found]
            if models:
                groups.append(
                    {
                        "name": title,
                        "app_label": key,
                        "app_url": f"{reverse('admin:index', current_app=self.name)}#group-{key}",
                        "has_module_perms": True,
                        "models": models,
                    }
                )
        return [*groups, *rest]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        links = {}
        for app in context["available_apps"]:
            for model in app["models"]:
                if model["admin_url"]:
                    name = f"{model['model']._meta.app_label}.{model['object_name'].lower()}"
                    links[name] = {"name": model["name"], "url": model["admin_url"]}
        home = {"name": "board", "url": reverse("admin:index", current_app=self.name)}
        context["desk_links"] = [home, *(links[name] for name in IN_HEADER if name in links)]
        return context

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        from sizing.admin.board.page import board_part

        return super().index(request, {"title": "Board", **board_part(request), **(extra_context or {})})

    def get_urls(self) -> list[Any]:
        from sizing.admin.board.ask import ask_view
        from sizing.admin.board.live import live_view
        from sizing.admin.history import history_view

        return [
            path("ask/", self.admin_view(ask_view), name="ask"),
            path("board/live/", self.admin_view(live_view), name="board_live"),
            path("history/", self.admin_view(history_view), name="history"),
            *super().get_urls(),
        ]

    def app_index(
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        # Its groups have titles of their own, so the page takes the app's.
        known = {app.label: app.verbose_name for app in apps.get_app_configs()}
        title = {"title": known.get(app_label, app_label)}
        return super().app_index(request, app_label, {**title, **(extra_context or {})})

    def autocomplete_view(self, request: HttpRequest) -> JsonResponse:
        return DeskAutocomplete.as_view(admin_site=self)(request)  # type: ignore[return-value]

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign in; after too many failures it says how long to wait. `next` is kept."""
        if request.method != "POST":
            return super().login(request, extra_context)
        name, address = request.POST.get("username", ""), request.META.get("REMOTE_ADDR", "")
        try:
            with sign_in.attempt(name, address) as attempt:
                response = super().login(request, extra_context)
                if response.status_code == 302:
                    attempt.succeeded()
                else:
                    _log_failure(name, address)
        except sign_in.Wait as wait:
            return self._too_early(request, wait)
        return response

    def _too_early(self, request: HttpRequest, wait: sign_in.Wait) -> HttpResponse:
        response = TemplateResponse(
            request,
            "admin/login.html",
            {
                **self.each_context(request),
                "title": "Log in",
                "subtitle": None,
                "form": AdminAuthenticationForm(request),
                "app_path": request.get_full_path(),
                "next": request.POST.get("next") or request.GET.get("next", ""),
                "sign_in_error": f"Too many failed sign-ins. Try again in {wait_words(wait.seconds)}.",
            },
            status=429,
        )
        response.headers["Retry-After"] = str(wait.seconds)
        return response

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Change one's own password: the history tells it, and all other sessions of the person end."""
        with transaction.atomic():
            response = super().password_change(request, extra_context)
            if request.method == "POST" and response.status_code == 302:
                user = cast(User, request.user)
                event = Event(User, user.pk, user.get_username(), CHANGE, ("password",))
                history.write(By(history.PAGE, user), [event])
        return response


def wait_words(seconds: int) -> str:
    """A wait, as people say it: `32 seconds`, `5 minutes`."""
    return plural(seconds, "second") if seconds < 120 else plural(-(-seconds // 60), "minute")


def _log_failure(name: str, address: str) -> None:
    """The name only where somebody has it: what is typed there by mistake may be a password."""
    known = User.objects.filter(username=name[:150]).exists() if name.isprintable() else False
    logger.warning(
        "sign-in failed from %s for %s", address or "nowhere", name if known else "an unknown name"
    )
