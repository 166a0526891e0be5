"""Measurement runs: to watch and to cancel."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from sizing.api.filters import RefreshFilter
from sizing.api.serializers import RefreshSerializer
from sizing.api.views.base import Collection
from sizing.models import Refresh

REFRESHES = Refresh.objects.select_related("variant__model", "profile", "replica", "requested_by")


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
    permission_for = {"cancel": ("change", Refresh)}

    @extend_schema(
        summary="Cancel a run",
        request=None,
        responses={
            200: OpenApiResponse(RefreshSerializer, description="The run, cancelled or told to stop.")
        },
    )
    @action(detail=True, methods=["post"], filterset_class=None)
    def cancel(self, request: Request, id: str) -> Response:
        """A queued run is cancelled at once, a running one at its next step; a finished one stays."""
        from sizing.measuring import refreshes

        row = self.get_object()
        refreshes.cancel(row.pk)
        return Response(RefreshSerializer(REFRESHES.get(pk=row.pk)).data)
