"""How the OpenAPI document describes what every address has: errors, and names in the path."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import build_parameter_type
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from sizing.api.serializers.answer import ErrorSerializer

ERRORS = {
    "400": "A parameter or the body is wrong: `invalid`.",
    "401": "No valid token and no session: `unauthenticated`.",
    "403": "The permission is missing: `forbidden`.",
    "404": "There is no such object: `not_found`.",
    "409": "Something else holds the object, or it was changed meanwhile: `conflict`.",
    "413": "The body is too large: `too_large`.",
    "415": "The body is of another media type: `unsupported_media_type`.",
    "429": "Too many requests; Retry-After says how long to wait: `throttled`.",
    "503": "The database cannot be reached, or has no tables yet: `unavailable`.",
}
WRITES = ("POST", "PUT", "PATCH", "DELETE")
BODIES = ("POST", "PUT", "PATCH")
WITH_ETAG = ("retrieve", "create", "update", "partial_update", "destroy")
ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=[200, 201],
    description="Stands for all of the object that can be written.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag of the object that this is meant for, as a read gave it: 409 where the object was "
    "changed meanwhile, and then nothing is written. Left out, or `*`: whatever the object is.",
)


class DeskSchema(AutoSchema):
    """Adds the errors that an operation can give, and describes path parameters."""

    def get_tags(self) -> list[str]:
        tags: list[str] = [self.path.removeprefix("/api/v1/").split("/")[0]]
        return tags

    def get_operation_id(self) -> str:
        words = self.path.removeprefix("/api/v1/").replace("{", "").replace("}", "").split("/")
        kept = [word for word in words if word not in ("name", "id")]
        action = getattr(self.view, "action", None) or self.method.lower()
        if action == kept[-1]:
            kept.pop()
        return "_".join([*kept, action])

    def get_override_parameters(self) -> list[Any]:
        """ETags, where objects have them, and what to send them back in."""
        action = getattr(self.view, "action", None)
        if not getattr(self.view, "has_etags", False) or action not in WITH_ETAG:
            return []
        found = [ETAG] if action != "destroy" else []
        return [*found, IF_MATCH] if action in ("update", "partial_update", "destroy") else found

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        responses = super()._get_response_bodies(direction=direction)
        codes = ["401", "403", "429", "503"]
        if self._may_be_invalid():
            codes.append("400")
        if "{" in self.path or self._is_list_view():
            codes.append("404")
        if self.method in WRITES:
            codes.append("409")
        if self.method in BODIES and self.get_request_serializer() is not None:
            codes += ["413", "415"]
        for code in codes:
            if code not in responses:
                described = OpenApiResponse(ErrorSerializer, description=ERRORS[code])
                responses[code] = self._get_response_for_code(  # type: ignore[no-untyped-call]
                    described, code, direction=direction
                )
        return dict(sorted(responses.items()))

    def _may_be_invalid(self) -> bool:
        return bool(
            self.method in BODIES or self._is_list_view() or getattr(self.view, "action", "") == "target"
        )

    def _resolve_path_parameters(self, variables: list[str]) -> list[Any]:
        words = {
            "id": (getattr(self.view, "id_schema", {"type": "integer", "minimum": 1}), "Id."),
            "name": ({"type": "string", "minLength": 1}, getattr(self.view, "name_help", "")),
        }
        return [
            build_parameter_type(
                name=variable,
                location=OpenApiParameter.PATH,
                schema=words[variable][0],
                description=words[variable][1],
            )
            for variable in variables
        ]
