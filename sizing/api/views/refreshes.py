"""Measurement runs: to watch, to cancel and to ask for again."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from sizing.api.examples import ACTIVE_ALREADY, QUEUED, RUNNING
from sizing.api.filters import RefreshFilter
from sizing.api.serializers import ErrorSerializer, RefreshSerializer
from sizing.api.views.base import Collection, by
from sizing.measuring import refreshes as life
from sizing.models import Refresh, history
from sizing.services import refreshes

REFRESHES = Refresh.objects.select_related(
    "variant__model", "profile", "replica", "requested_by", "measurement"
).prefetch_related("levels", "measurement__levels")

ACCEPTED = OpenApiResponse(
    RefreshSerializer,
    description="The run is queued; Location is its address, to be polled until it is over.",
    examples=[QUEUED],
)
CONFLICT = OpenApiResponse(
    ErrorSerializer,
    description="A run of this variant on this profile is queued or running: `conflict`.",
    examples=[ACTIVE_ALREADY],
)
NOT_MEASURABLE = (
    "`not_benchable`, `profile_required`, `unknown_profile`, `unknown_variant`, `unknown_replica`, `invalid`."
)


def asked_by(request: Request) -> dict[str, Any]:
    """Who asks for a run, as the services want to know."""
    return {"trigger": Refresh.Trigger.API, "user": request.user}


def accepted(row: Refresh) -> Response:
    """202: the run that was queued, and where to follow it."""
    location = reverse("refresh-detail", kwargs={"id": row.pk})
    shown = RefreshSerializer(REFRESHES.get(pk=row.pk)).data
    return Response(shown, status=202, headers={"Location": location})


class Refreshes(Collection):
    """Runs that measure a variant on a profile anew; `models/{name}/refresh` makes one."""

    queryset = REFRESHES
    serializer_class = RefreshSerializer
    filterset_class = RefreshFilter
    search_fields = ["variant__model__name", "variant__name", "profile__name"]
    ordering_fields = ["queued_at", "started_at", "finished_at", "state"]
    lookup_field = lookup_url_kwarg = "id"
    lookup_value_regex = "[^/]+"
    noun = "refresh"
    permission_for = {"cancel": ("change", Refresh), "retry": ("add", Refresh)}

    @extend_schema(
        summary="Look at a run",
        responses={200: OpenApiResponse(RefreshSerializer, description="The run.", examples=[RUNNING])},
    )
    def retrieve(self, request: Request, **kwargs: str) -> Response:
        """How far the run is: its state, the level being measured, and the levels that are finished."""
        return super().retrieve(request, **kwargs)

    @extend_schema(
        summary="Cancel a run",
        request=None,
        responses={
            200: OpenApiResponse(RefreshSerializer, description="The run, cancelled or told to stop.")
        },
    )
    @action(detail=True, methods=["post"], filterset_class=None)
    def cancel(self, request: Request, id: str) -> Response:
        """A queued run is cancelled at once, a running one within a second; a finished one stays."""
        row = self.get_object()
        if life.cancel(row.pk):
            history.write(by(request), [history.changed(row, "cancel requested")])
        return Response(RefreshSerializer(REFRESHES.get(pk=row.pk)).data)

    @extend_schema(
        summary="Ask for a run again",
        request=None,
        responses={
            202: ACCEPTED,
            400: OpenApiResponse(
                ErrorSerializer, description="It cannot be measured any more: `not_benchable`."
            ),
            409: CONFLICT,
        },
    )
    @action(detail=True, methods=["post"], filterset_class=None)
    def retry(self, request: Request, id: str) -> Response:
        """Queue a new run of the same variant on the same profile. The run itself must be over."""
        row = self.get_object()
        return accepted(refreshes.retry(row.pk, **asked_by(request)))
