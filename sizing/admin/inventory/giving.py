"""The page that takes an inventory file."""

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

from sizing.admin.cluster.giving import CappedList
from sizing.admin.imports.form import capitalized
from sizing.admin.inventory.may import may_load
from sizing.inventory.reading import LARGEST_DOCUMENT
from sizing.models import InventoryLoad
from sizing.services import inventory_loads
from sizing.services.errors import DeskError

MIB = 1024 * 1024
TOO_LARGE = f"The file is larger than {LARGEST_DOCUMENT // MIB} MiB; nothing was read."


class InventoryFileForm(forms.Form):
    """A file, and how it is meant."""

    inventory_file = forms.FileField(
        label="Inventory file",
        allow_empty_file=True,
        max_length=4096,
        error_messages={"required": "Choose a file."},
        help_text=f"YAML or JSON, at most {LARGEST_DOCUMENT // MIB} MiB. Objects are matched by name.",
    )
    replace = forms.BooleanField(
        required=False,
        label="Replace the inventory",
        help_text="Remove what the file leaves out. Else that stays as it is.",
    )


def give(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The form, and the file that comes with it; who may not load is refused before it is taken."""
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
        return _page(model_admin, request, InventoryFileForm())
    form = InventoryFileForm(request.POST, request.FILES)
    if getattr(request, "upload_too_large", False):
        return _page(model_admin, request, _refused(TOO_LARGE))
    if not form.is_valid():
        return _page(model_admin, request, form)
    file, replace = form.cleaned_data["inventory_file"], form.cleaned_data["replace"]
    if replace and not may_load(request, replace=True):
        form.add_error("replace", "You may not remove what a file leaves out; load it without this.")
        return _page(model_admin, request, form)
    try:
        row = inventory_loads.take(file.name, file, replace=replace, user=cast(User, request.user))
    except DeskError as refusal:
        form.add_error("inventory_file", f"{capitalized(refusal.message)}.")
        return _page(model_admin, request, form)
    if row.state != InventoryLoad.State.REFUSED:
        model_admin.log_addition(request, row, [{"added": {}}])
    return HttpResponseRedirect(reverse("admin:sizing_inventoryload_change", args=[row.pk]))


def _refused(why: str) -> InventoryFileForm:
    """The form after an upload that was not taken to its end."""
    form = InventoryFileForm({})
    form.errors.clear()
    form.add_error("inventory_file", why)
    return form


def _page(model_admin: Any, request: HttpRequest, form: InventoryFileForm) -> HttpResponse:
    form.use_required_attribute = False
    if not may_load(request, replace=True) and "replace" not in form.errors:
        del form.fields["replace"]
    fields = AdminForm(cast(Any, form), [(None, {"fields": list(form.fields)})], {})
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "Load an inventory file",
        "subtitle": None,
        "opts": model_admin.opts,
        "form": form,
        "fields": fields,
        "media": model_admin.media + form.media,
    }
    return TemplateResponse(request, "admin/sizing/inventoryload/give.html", context)
