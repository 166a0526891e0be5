"""Request bodies: JSON with exact decimals, and uploads of files, each up to a size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import IO, Any, NoReturn

from django.core.exceptions import TooManyFilesSent
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, MultiPartParser

from sizing.api.errors import TooLarge
from sizing.services.imports import MOST_FILES

LARGEST_BODY = 10 * 1024 * 1024
LARGEST_UPLOAD = 201 * 1024 * 1024
"""Files of 200 MiB, and what stands between them."""


class ExactJSONParser(BaseParser):
    """JSON whose decimals stay exact; NaN, infinities and repeated keys are refused."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read(LARGEST_BODY + 1)
        if len(body) > LARGEST_BODY:
            raise TooLarge(f"the body is larger than {LARGEST_BODY // 1024 // 1024} MiB")
        try:
            return json.loads(
                body.decode("utf-8-sig"),
                parse_float=Decimal,
                parse_constant=_refuse,
                object_pairs_hook=_object,
            )
        except RecursionError:
            raise ParseError("the body is nested too deeply") from None
        except (ValueError, ArithmeticError) as error:
            raise ParseError(f"the body is not JSON: {error}") from None


class UploadParser(MultiPartParser):
    """Files in a form, each straight to the disk, so that no upload is held in memory."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        request = (parser_context or {})["request"]._request
        if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST_UPLOAD:
            raise TooLarge(f"the upload is larger than {LARGEST_UPLOAD // 1024 // 1024 - 1} MiB")
        request.upload_handlers = [TemporaryFileUploadHandler(request)]
        try:
            return super().parse(stream, media_type, parser_context)
        except TooManyFilesSent:
            raise TooLarge(f"too many files were given; at most {MOST_FILES} are taken at once") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f'the key "{next(k for k in keys if keys.count(k) > 1)}" is there twice')
    return found
