"""The form with which result files are given, and what of it the services take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, BinaryIO, cast

from django import forms
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile

from sizing.models import BenchProfile, Variant
from sizing.services import imports
from sizing.services.errors import DeskError
from sizing.services.imports import MIB, MOST_BYTES, MOST_FILE_BYTES, MOST_FILES, Upload, Wish

TOO_MANY = f"At most {MOST_FILES} files are taken at once."

FIELD_OF = {
    "unknown_variant": "variant",
    "not_found": "variant",
    "unknown_profile": "profile",
    "profile_required": "profile",
}
"""Where a refusal's field is not the files themselves, by its code."""


class ManyFiles(forms.FileInput):
    allow_multiple_selected = True


class FilesField(forms.Field):
    """Some files; what is in them is for the readers to say, also where it is nothing."""

    widget = ManyFiles

    def clean(self, value: Any) -> list[UploadedFile[Any]]:
        if not value:
            raise ValidationError("Choose at least one file.", code="required")
        if len(value) > MOST_FILES:
            raise ValidationError(TOO_MANY)
        files: list[UploadedFile[Any]] = list(value)
        return files


class OneOfMany(AutocompleteSelect):
    """A choice among thousands; what is no number chooses none of them, but is no error of the server."""

    @property
    def media(self) -> forms.Media:
        return super().media + forms.Media(js=["sizing/choices.js"])

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        known = [one for one in value if str(one).isdecimal() and len(str(one)) < 19]
        return super().optgroups(name, known or [""], attr)


class GivingForm(forms.Form):
    """Files, and what was measured. The names are for browsers without scripts, which cannot search."""

    result_files = FilesField(
        label="Result files",
        help_text=f"Several files form one sweep. At most {MOST_FILES} files of {MOST_FILE_BYTES // MIB} MiB"
        f" each and {MOST_BYTES // MIB} MiB in all; gzip is unpacked.",
    )
    variant = forms.ModelChoiceField(
        Variant.objects.select_related("model"),
        required=False,
        label="Variant",
        help_text="The model's variant that was measured: the files do not tell it.",
        error_messages={"invalid_choice": "There is no such variant."},
    )
    profile = forms.ModelChoiceField(
        BenchProfile.objects.all(),
        required=False,
        label="Profile",
        help_text="Whose SLO judges the points. Empty: the model's default.",
        error_messages={"invalid_choice": "There is no such profile."},
    )
    force = forms.BooleanField(
        required=False,
        label="Another shape on purpose (force)",
        help_text="Take points whose input or output tokens differ from the profile's by more than 20 %;"
        " they are labeled “other shape”.",
    )
    measured_at = forms.CharField(
        required=False,
        max_length=64,
        label="Measured at, if the files do not say",
        help_text="Date and time as in 2026-11-30T14:05, in UTC unless it ends in another zone, like +01:00."
        " Empty: the time of the import.",
    )
    model_name = forms.CharField(required=False, max_length=255, label="Model’s name")
    variant_name = forms.CharField(
        required=False, max_length=255, label="Variant’s name", help_text="Empty: the model's only one."
    )
    profile_name = forms.CharField(
        required=False, max_length=255, label="Profile’s name", help_text="Empty: the model's default."
    )

    def clean_measured_at(self) -> datetime | None:
        try:
            return imports.time_of(self.cleaned_data["measured_at"])
        except DeskError as refusal:
            raise ValidationError(f"{capitalized(refusal.message)}.") from None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "result_files" in cleaned:
            try:
                imports.check_sizes(uploads_of(cleaned["result_files"]))
            except DeskError as refusal:
                self.add_error("result_files", lines_of(refusal))
        if "variant" in cleaned and "profile" in cleaned:
            try:
                cleaned["wish"] = self._wish(cleaned)
            except DeskError as refusal:
                self.add_error(FIELD_OF.get(refusal.code, "variant"), f"{capitalized(refusal.message)}.")
        return cleaned

    def _wish(self, cleaned: dict[str, Any]) -> Wish:
        variant, profile = cleaned["variant"], cleaned["profile"]
        model, name = cleaned.get("model_name"), cleaned.get("variant_name")
        if variant is not None:
            model, name = variant.model.name, variant.name
        if not model:
            raise DeskError("choose the variant that was measured")
        on = profile.name if profile else cleaned.get("profile_name")
        return imports.wish(
            model,
            name or None,
            on or None,
            force=cleaned["force"],
            measured_at=cleaned.get("measured_at"),
        )


def capitalized(words: str) -> str:
    return words[:1].upper() + words[1:]


def lines_of(refusal: DeskError) -> list[str]:
    """What a refusal says of the files, one line each."""
    found = [line for name, lines in refusal.fields.items() if name != "file" for line in lines]
    return found or [f"{capitalized(refusal.message)}."]


def uploads_of(files: list[UploadedFile[Any]]) -> list[Upload]:
    """The files of a request for the service, which opens them more than once."""

    def upload(file: UploadedFile[Any]) -> Upload:
        @contextmanager
        def opened() -> Iterator[BinaryIO]:
            file.seek(0)
            yield cast(BinaryIO, file)  # closed with the request, for then it is gone from the disk

        return Upload(file.name or "file", file.size or 0, opened)

    return [upload(file) for file in files]
