"""Addresses: every one with and without a trailing slash, names with slashes included."""

from __future__ import annotations

from rest_framework.routers import DynamicRoute, Route, SimpleRouter

# Written as a group, so that the OpenAPI document shows the address without the slash.
OPTIONAL_SLASH = r"(?:/)?\Z"


class SlashRouter(SimpleRouter):
    """A router whose actions come before the objects, for an object's name may hold slashes."""

    routes = [
        Route(
            url=rf"^{{prefix}}{OPTIONAL_SLASH}",
            mapping={"get": "list", "post": "create"},
            name="{basename}-list",
            detail=False,
            initkwargs={"suffix": "List"},
        ),
        DynamicRoute(
            url=rf"^{{prefix}}/{{lookup}}/{{url_path}}{OPTIONAL_SLASH}",
            name="{basename}-{url_name}",
            detail=True,
            initkwargs={},
        ),
        Route(
            url=rf"^{{prefix}}/{{lookup}}{OPTIONAL_SLASH}",
            mapping={
                "get": "retrieve",
                "put": "update",
                "patch": "partial_update",
                "delete": "destroy",
            },
            name="{basename}-detail",
            detail=True,
            initkwargs={"suffix": "Instance"},
        ),
    ]
