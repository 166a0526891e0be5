"""The collections of the inventory."""

from __future__ import annotations

from django.db.models import Prefetch
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from sizing.api import filters, serializers
from sizing.api.examples import ANSWER, NOT_BENCHABLE, NOT_MEASURED
from sizing.api.filters import check_parameters
from sizing.api.schema import ERRORS
from sizing.api.views.base import EditableCollection
from sizing.api.views.refreshes import ACCEPTED, CONFLICT, NOT_MEASURABLE, accepted, asked_by
from sizing.domain.supposing import FORMS
from sizing.models import (
    Answer,
    BenchProfile,
    Gpu,
    Measurement,
    Node,
    Placement,
    Refresh,
    Replica,
    ServedModel,
    Target,
    Variant,
)
from sizing.services import refreshes, reports, targets
from sizing.services.answers import Asker

AS_IF = (
    "Answers as if this were so, which changes nothing; may be given again, and is supposed in order. There "
    f"are {', '.join(f'`{form}`' for form in FORMS)}; N is a number, or `none` for no `max_replicas`. "
    "Names are percent-encoded: a colon or a percent sign in one must be."
)


class Models(EditableCollection):
    """Served models with their variants; by name, slashes and colons included."""

    queryset = ServedModel.objects.select_related("default_profile").prefetch_related("variants")
    serializer_class = serializers.ModelSerializer
    filterset_class = filters.ModelFilter
    search_fields = ["name", "owner"]
    ordering_fields = ["name", "priority", "min_replicas", "max_replicas", "workload"]
    lookup_field = lookup_url_kwarg = "name"
    lookup_value_regex = ".+?"
    by_name, by_id, noun = True, False, "model"
    name_help = "Name of the model; slashes may stand as they are or percent-encoded."
    permission_for = {"target": ("view", ServedModel), "refresh": ("add", Refresh)}

    @extend_schema(
        summary="How many replicas it takes, whether they fit, and why not",
        parameters=[
            OpenApiParameter(
                "tokens_per_sec",
                OpenApiTypes.DOUBLE,
                required=True,
                description="Output tokens per second that the model shall serve: above 0, at most 1e12. "
                "Only digits, a point and an exponent.",
            ),
            OpenApiParameter(
                "profile", str, description="Name of a bench profile. Left out: the model's own."
            ),
            OpenApiParameter(
                "variant", str, description="Name of a variant. Left out: the first measured on the profile."
            ),
            OpenApiParameter(
                "utilization",
                OpenApiTypes.DOUBLE,
                description="Share of the measured throughput to plan with, in (0, 1]. Left out: 1.",
            ),
            OpenApiParameter("as_if", str, many=True, description=AS_IF),
            OpenApiParameter(
                "explain", str, enum=["nodes"], description="nodes: adds an entry for every node."
            ),
        ],
        responses={
            200: OpenApiResponse(serializers.AnswerSerializer, description="The answer.", examples=[ANSWER]),
            400: OpenApiResponse(
                serializers.ErrorSerializer,
                description="Among others `not_measured`, `profile_required`, `unknown_profile`.",
                examples=[NOT_MEASURED],
            ),
        },
    )
    @action(detail=True, filterset_class=None, pagination_class=None)
    def target(self, request: Request, name: str) -> Response:
        """Size the model for a throughput at an SLO, by what one replica was measured to serve."""
        question = targets.parse_question(name, dict(request.query_params.lists()))
        return Response(targets.ask(question, Asker(Answer.Channel.API, request.user)))

    @extend_schema(
        summary="Measure a variant anew",
        request=serializers.RefreshOptionsSerializer,
        responses={
            202: ACCEPTED,
            400: OpenApiResponse(
                serializers.ErrorSerializer, description=NOT_MEASURABLE, examples=[NOT_BENCHABLE]
            ),
            409: CONFLICT,
        },
    )
    @action(detail=True, methods=["post"], filterset_class=None, pagination_class=None)
    def refresh(self, request: Request, name: str) -> Response:
        """Queue a measurement of one replica at the SLO of a profile.

        The answer comes at once; a worker measures on a replica that is marked benchable and is ready,
        one at a time on a node. What was measured before stays valid until the new one is stored.
        """
        model = self.get_object()
        check_parameters(request, ())
        asked = serializers.RefreshOptionsSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return accepted(refreshes.request(model.name, **asked.validated_data, **asked_by(request)))


class Profiles(EditableCollection):
    """Bench profiles: a workload and its SLO."""

    queryset = BenchProfile.objects.all()
    serializer_class = serializers.ProfileSerializer
    filterset_class = filters.ProfileFilter
    search_fields = ["name"]
    ordering_fields = ["name", "input_tokens", "output_tokens"]
    lookup_field = lookup_url_kwarg = "name"
    lookup_value_regex = ".+?"
    by_name, noun = True, "profile"


class Variants(EditableCollection):
    """The variants of all models."""

    queryset = Variant.objects.select_related("model")
    serializer_class = serializers.VariantSerializer
    filterset_class = filters.VariantFilter
    search_fields = ["name", "model__name"]
    ordering_fields = ["name", "position", "gpus", "nodes"]
    lookup_field = lookup_url_kwarg = "id"
    lookup_value_regex = "[^/]+"
    noun = "variant"


class Nodes(EditableCollection):
    """Machines with their GPUs."""

    queryset = Node.objects.prefetch_related(Prefetch("gpus", Gpu.objects.order_by("index")))
    serializer_class = serializers.NodeSerializer
    filterset_class = filters.NodeFilter
    search_fields = ["name"]
    ordering_fields = ["name", "ready", "schedulable", "cost_per_hour", "cpu_millis", "memory_mib"]
    lookup_field = lookup_url_kwarg = "name"
    lookup_value_regex = ".+?"
    by_name, noun = True, "node"


class Replicas(EditableCollection):
    """Running copies of models, each bound to named GPUs."""

    queryset = Replica.objects.select_related("variant__model").prefetch_related(
        Prefetch("placements", Placement.objects.select_related("gpu__node"))
    )
    serializer_class = serializers.ReplicaSerializer
    filterset_class = filters.ReplicaFilter
    search_fields = ["name", "variant__model__name"]
    ordering_fields = ["name", "state", "started_at"]
    lookup_field = lookup_url_kwarg = "name"
    lookup_value_regex = ".+?"
    by_name, noun = True, "replica"


class Measurements(EditableCollection):
    """What one replica of a variant was measured to serve."""

    queryset = Measurement.objects.select_related("variant__model", "profile").prefetch_related("levels")
    serializer_class = serializers.MeasurementSerializer
    filterset_class = filters.MeasurementFilter
    search_fields = ["variant__model__name", "variant__name", "profile__name", "source"]
    ordering_fields = ["measured_at", "tok_per_sec"]
    lookup_field = lookup_url_kwarg = "id"
    lookup_value_regex = "[^/]+"
    noun = "measurement"

    @extend_schema(
        summary="The levels of a measurement, for others",
        parameters=[
            OpenApiParameter(
                "as",
                str,
                enum=list(reports.KINDS),
                description="llm-d (left out): llm-d Benchmark Reports 0.2 as a JSON list, one a level; "
                "csv: a table, times in ms.",
            )
        ],
        responses={
            (200, "application/json"): OpenApiResponse(
                {"type": "array", "items": {"type": "object", "additionalProperties": True}},
                description="A Benchmark Report for each level.",
            ),
            (200, "text/csv"): OpenApiResponse(
                OpenApiTypes.STR, description="One line a level; an empty cell is not known."
            ),
            400: OpenApiResponse(serializers.ErrorSerializer, description=ERRORS["400"]),
            404: OpenApiResponse(
                serializers.ErrorSerializer,
                description="There is no such measurement, or it was entered by hand and has no levels.",
            ),
        },
    )
    @action(detail=True, filterset_class=None, pagination_class=None)
    def report(self, request: Request, id: str) -> HttpResponse:
        """The levels as files that other tools read; this desk reads its own reports back."""
        measurement = self.get_object()
        check_parameters(request, ["as"])
        kinds = request.query_params.getlist("as") or [reports.LLM_D]
        if len(kinds) > 1 or kinds[0] not in reports.KINDS:
            raise ValidationError({"as": [f"must be one of {', '.join(reports.KINDS)}"]})
        made = reports.report(measurement, kinds[0])
        disposition = f'attachment; filename="{made.file_name}"'
        headers = {"Content-Disposition": disposition}
        return HttpResponse(made.text, content_type=made.media_type, headers=headers)


class Targets(EditableCollection):
    """Saved wishes."""

    queryset = Target.objects.select_related("model", "profile", "variant")
    serializer_class = serializers.TargetSerializer
    filterset_class = filters.TargetFilter
    search_fields = ["model__name", "profile__name"]
    ordering_fields = ["tokens_per_sec", "utilization"]
    lookup_field = lookup_url_kwarg = "id"
    lookup_value_regex = "[^/]+"
    noun = "target"
