"""The product's routes and an empty authenticated view."""

from django.urls import path
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from llmgw_admin.urls import handler400, handler403, handler404, handler500
from llmgw_admin.urls import urlpatterns as product

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


class EmptyView(APIView):
    """Signs in and says nothing."""

    permission_classes = (IsAuthenticated,)

    def get(self, request: Request) -> Response:
        return Response({})


urlpatterns = [path("empty", EmptyView.as_view()), *product]
