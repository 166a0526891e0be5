"""Answers that were given: to look at, and to compute again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from sizing.api.filters import AnswerFilter, check_parameters
from sizing.api.serializers import (
    ErrorSerializer,
    KeptAnswerDetailSerializer,
    KeptAnswerSerializer,
    ReplaySerializer,
)
from sizing.api.views.base import Collection
from sizing.models import Answer
from sizing.services import answers


class Answers(Collection):
    """Targets that somebody asked by page, API or command, with the answers that they were given."""

    queryset = Answer.objects.all()
    serializer_class = KeptAnswerSerializer
    filterset_class = AnswerFilter
    search_fields = ["model", "asked_by_name"]
    ordering_fields = ["asked_at", "model"]
    lookup_field = lookup_url_kwarg = "id"
    lookup_value_regex = "[^/]+"
    noun = "answer"
    id_schema = {"type": "string", "format": "uuid"}
    permission_for = {"replay": ("view", Answer)}

    def get_queryset(self) -> Any:
        return Answer.objects.in_short() if self.action == "list" else Answer.objects.all()

    def get_object(self) -> Answer:
        """The answer of the address; one that was given a moment ago is waited for."""
        key = self.kwargs["id"]
        try:
            found = answers.written_by_now(UUID(key))
        except ValueError:
            found = None
        if found is None:
            raise NotFound(f'no answer "{key}"')
        return found

    @extend_schema(
        summary="Look at an answer",
        responses={200: OpenApiResponse(KeptAnswerDetailSerializer, description="The answer.")},
    )
    def retrieve(self, request: Request, **kwargs: str) -> Response:
        """The question as it was asked, what the answer rests on, and the answer."""
        return Response(KeptAnswerDetailSerializer(self.get_object()).data)

    @extend_schema(
        summary="Compute an answer again",
        responses={
            200: OpenApiResponse(ReplaySerializer, description="Whether it is the same, and what differs."),
            409: OpenApiResponse(
                ErrorSerializer, description="The inventory that it rests on was not kept: `conflict`."
            ),
        },
    )
    @action(detail=True, filterset_class=None, pagination_class=None)
    def replay(self, request: Request, id: str) -> Response:
        """Ask again by the code of today, on the inventory that the answer rests on, as of its time."""
        check_parameters(request, ())
        return Response(ReplaySerializer(answers.replay(self.get_object())).data)
