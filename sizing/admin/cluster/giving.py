"""The page that takes a list of the cluster."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib.admin.helpers import AdminForm
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, TooManyFilesSent
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_protect

from sizing.admin.imports.form import capitalized
from sizing.admin.imports.giving import Capped
from sizing.inventory.reading import LARGEST_DOCUMENT
from sizing.services import cluster_imports
from sizing.services.errors import DeskError

MIB = 1024 * 1024
TOO_LARGE = f"The list is larger than {LARGEST_DOCUMENT // MIB} MiB; nothing was read."
COMMAND = "kubectl get nodes,pods,pdb,priorityclasses,replicasets -A -o json > cluster.json"
DRA = "kubectl get nodes,pods,pdb,resourceslices,resourceclaims,deviceclasses -A -o json > cluster.json"


class CappedList(Capped):
    """Stops to take an upload that is larger than a list may be."""

    def most(self) -> int:
        return LARGEST_DOCUMENT


class ListForm(forms.Form):
    """A list, and how it is meant."""

    list_file = forms.FileField(
        label="List of the cluster",
        allow_empty_file=True,
        max_length=4096,
        error_messages={"required": "Choose a file."},
        help_text=f"JSON or YAML as kubectl prints it, at most {LARGEST_DOCUMENT // MIB} MiB;"
        " gzip is unpacked.",
    )
    partial = forms.BooleanField(
        required=False,
        label="Take an incomplete list",
        help_text="What it leaves out stays as it is. For a page of a long list, or nodes without pods.",
    )


def give(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The form, and the list that comes with it; who may not import is refused before it is taken."""
    if not model_admin.has_add_permission(request):
        raise PermissionDenied
    # Straight to the disk, so that no upload is held in memory.
    request.upload_handlers = [CappedList(request), TemporaryFileUploadHandler(request)]

    def protected(request: HttpRequest) -> HttpResponse:
        return _give(model_admin, request)

    try:
        # Django takes the file here, to see the token that protects the form.
        return csrf_protect(protected)(request)
    except TooManyFilesSent:
        return _page(model_admin, request, _refused("One file is taken at once."))


def _give(model_admin: Any, request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(model_admin, request, ListForm())
    form = ListForm(request.POST, request.FILES)
    if getattr(request, "upload_too_large", False):
        return _page(model_admin, request, _refused(TOO_LARGE))
    if not form.is_valid():
        return _page(model_admin, request, form)
    file = form.cleaned_data["list_file"]
    try:
        row = cluster_imports.take(
            file.name, file, partial=form.cleaned_data["partial"], user=cast(User, request.user)
        )
    except DeskError as refusal:
        form.add_error("list_file", f"{capitalized(refusal.message)}.")
        return _page(model_admin, request, form)
    model_admin.log_addition(request, row, [{"added": {}}])
    return HttpResponseRedirect(reverse("admin:sizing_clusterimport_change", args=[row.pk]))


def _refused(why: str) -> ListForm:
    """The form after an upload that was not taken to its end."""
    form = ListForm({})
    form.errors.clear()
    form.add_error("list_file", why)
    return form


def _page(model_admin: Any, request: HttpRequest, form: ListForm) -> HttpResponse:
    form.use_required_attribute = False
    fields = AdminForm(cast(Any, form), [(None, {"fields": list(form.fields)})], {})
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "Import the cluster",
        "subtitle": None,
        "opts": model_admin.opts,
        "form": form,
        "fields": fields,
        "command": COMMAND,
        "dra_command": DRA,
        "media": model_admin.media + form.media,
    }
    return TemplateResponse(request, "admin/sizing/clusterimport/give.html", context)
