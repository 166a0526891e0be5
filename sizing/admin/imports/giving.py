"""The page that takes result files, and what it takes of a request that carries them."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.admin.helpers import AdminForm
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, TooManyFilesSent
from django.core.files.uploadhandler import FileUploadHandler, StopUpload, TemporaryFileUploadHandler
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_protect

from sizing.admin.imports.form import TOO_MANY, GivingForm, OneOfMany, lines_of, uploads_of
from sizing.models import BenchImport
from sizing.services import imports
from sizing.services.errors import DeskError
from sizing.services.imports import MIB, MOST_BYTES

FORMATS = (
    ("vLLM bench serve", "result file, detailed, appended, or the console's text"),
    ("GuideLLM", "its JSON report, all versions"),
    (
        "AIPerf and genai-perf",
        "profile_export JSON: a point or a sweep; of a search each point, not its history",
    ),
    ("inference-perf", "the stage_*_lifecycle_metrics files, not the summary"),
    ("SGLang bench_serving", "JSON lines, or the console's text"),
    ("InferenceX", "its result JSON"),
    ("llmperf", "the summary JSON"),
    ("llm-d Benchmark Report", "JSON or YAML"),
)
"""What is read, and which of its files."""

TOO_LARGE = f"The files have more than {MOST_BYTES // MIB} MiB in all; nothing was read."

# The files come after what was measured, so that it is known where there are too many of them.
CHOSEN = ("variant", "profile", "result_files", "measured_at", "force")
NAMED = ("model_name", "variant_name", "profile_name")


class Capped(FileUploadHandler):
    """Stops to take an upload that has more bytes than the files of an import may have."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self.taken = 0

    def most(self) -> int:
        """How many bytes are taken."""
        return MOST_BYTES

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self.taken += len(raw_data)
        if self.taken > self.most():
            cast(Any, self.request).upload_too_large = True
            raise StopUpload(connection_reset=False)
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None


def give(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The form, and the files that come with it; who may not give any is refused before they are taken."""
    if not model_admin.has_add_permission(request):
        raise PermissionDenied
    # Each straight to the disk, so that no upload is held in memory.
    request.upload_handlers = [Capped(request), TemporaryFileUploadHandler(request)]

    def protected(request: HttpRequest) -> HttpResponse:
        return _give(model_admin, request)

    try:
        # Django takes the files here, to see the token that protects the form.
        return csrf_protect(protected)(request)
    except TooManyFilesSent:
        return _not_taken(model_admin, request, TOO_MANY)


def _give(model_admin: Any, request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(model_admin, request, _form(model_admin, request))
    form = _form(model_admin, request, request.POST)
    if getattr(request, "upload_too_large", False):
        return _not_taken(model_admin, request, TOO_LARGE)
    if not form.is_valid():
        return _page(model_admin, request, form)
    try:
        row = imports.take(
            uploads_of(form.cleaned_data["result_files"]),
            form.cleaned_data["wish"],
            trigger=BenchImport.Trigger.ADMIN,
            user=cast(User, request.user),
        )
    except DeskError as refusal:
        form.add_error("result_files", lines_of(refusal))
        return _page(model_admin, request, form)
    model_admin.log_addition(request, row, [{"added": {}}])
    return HttpResponseRedirect(reverse("admin:sizing_benchimport_change", args=[row.pk]))


def _not_taken(model_admin: Any, request: HttpRequest, why: str) -> HttpResponse:
    """The form again, after an upload that was not taken to its end: what came behind it is not known."""
    form = _form(model_admin, request, request.POST)
    form.errors.clear()
    form.add_error("result_files", why)
    return _page(model_admin, request, form)


def _form(model_admin: Any, request: HttpRequest, data: Any = None) -> GivingForm:
    """The form; `?variant=` and `?profile=` of its address choose beforehand."""
    chosen = {name: request.GET[name] for name in ("variant", "profile") if name in request.GET}
    form = GivingForm(data, None if data is None else request.FILES, initial=chosen)
    for name in ("variant", "profile"):
        field: Any = form.fields[name]
        related: Any = BenchImport._meta.get_field(name)
        choices = field.choices
        field.label_from_instance = model_admin.admin_site.get_model_admin(
            related.related_model
        ).autocomplete_label
        field.widget = OneOfMany(related, model_admin.admin_site)
        field.widget.choices = choices
    return form


def _page(model_admin: Any, request: HttpRequest, form: GivingForm) -> HttpResponse:
    # To be shown as what it is; the names in its place are for browsers without scripts.
    form.use_required_attribute = False
    form.fields["variant"].required = True
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "Import result files",
        "subtitle": None,
        "opts": model_admin.opts,
        "form": form,
        "chosen": _fields(form, CHOSEN),
        "named": _fields(form, NAMED),
        "formats": FORMATS,
        "media": model_admin.media + form.media,
    }
    return TemplateResponse(request, "admin/sizing/benchimport/give.html", context)


def _fields(form: Any, names: tuple[str, ...]) -> AdminForm:
    return AdminForm(form, [(None, {"fields": list(names)})], {})
