"""Saving a form: under the lock of all writers, once, and not over what somebody else did meanwhile."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import flatten_fieldsets, unquote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from sizing.admin.meanwhile.conflict import Conflict, conflict_of
from sizing.admin.meanwhile.lines import lost, without_gone
from sizing.admin.meanwhile.marks import Seen, Shown, lines_of, seen_by, shown
from sizing.models import history
from sizing.models.locking import inventory_lock

ONCE = "desk_once"
"""The parameter with the id of a form for something new."""

REMEMBERED = timedelta(days=1)
ERRORS_SHOWN = 20
CHANGED = "Somebody else changed this meanwhile; reload the page and try again."

_ID = re.compile(r"[0-9a-f]{32}")


class SaveRefusedError(Exception):
    """What is wrong with a save, one line each; raised inside the transaction that it undoes."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines[0])
        self.lines = [
            *lines[:ERRORS_SHOWN],
            *([f"and {len(lines) - ERRORS_SHOWN} more"] * (len(lines) > ERRORS_SHOWN)),
        ]


class SavingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """An admin whose forms know what they showed."""

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        refusal: list[str] = getattr(request, "refusal", [])
        if not refusal:
            return form

        class Refused(form):  # type: ignore[valid-type,misc]
            def clean(self) -> Any:
                cleaned = super().clean()
                self.add_error(None, ValidationError(refusal))
                return cleaned

        return Refused

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        if request.method != "POST":
            return super().changeform_view(request, object_id, form_url, extra_context)
        try:
            with inventory_lock():
                if object_id is None:
                    made = self._made_already(request)
                    if made is not None:
                        return self._of_made(request, made)
                else:
                    self._look_for_conflict(request, object_id)
                return super().changeform_view(request, object_id, form_url, extra_context)
        except SaveRefusedError as refused:
            lines = refused.lines
        except IntegrityError:
            lines = [CHANGED]
        # All is rolled back. The same form again, now with the refusal among its errors.
        request.refusal = lines  # type: ignore[attr-defined]
        return super().changeform_view(request, object_id, form_url, extra_context)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if add:
            context["once"] = _once(request) or uuid.uuid4().hex
        elif obj is not None and self.has_change_permission(request, obj):
            context["conflict"] = getattr(request, "conflict", None)
            context["seen"] = (
                getattr(request, "seen", None) or seen_by(request) or self._seen(request, context)
            )
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _seen(self, request: HttpRequest, context: dict[str, Any]) -> Seen:
        """What the page that is about to be shown shows of the object, as it is stored."""
        if request.method == "POST":  # its forms hold what was typed
            stored = self.get_object(request, str(context["original"].pk))
            return Seen(history.newest(), shown(self, request, stored).marks() if stored else {})
        lines: dict[str, Any] = {}
        for inline in context["inline_admin_formsets"]:
            if inline.has_change_permission:
                lines |= lines_of(inline.formset)
        return Seen(history.newest(), Shown(context["adminform"].form, lines).marks())

    # Changed meanwhile

    def _look_for_conflict(self, request: HttpRequest, object_id: str) -> None:
        """Refuse the form that came back where its object is not what it showed; told by the page then.

        A form that leaves all as it is stored now is none to refuse, so that sending it twice is harmless.
        """
        obj = self.get_object(request, unquote(object_id))
        if obj is None or not self.has_change_permission(request, obj):
            return
        now = shown(self, request, obj)
        gone: set[str] = set()
        for prefix, stored in _stored(self, request, obj).items():
            gone |= lost(request.POST, prefix, stored)
            request.POST = without_gone(request.POST, prefix, stored)  # type: ignore[assignment]
        seen = seen_by(request)
        if seen is None or not seen.different(now.marks()):
            return
        typed, changes = self._typed(request, obj)
        if not (changes or gone & seen.marks.keys()):
            return
        found: Conflict = conflict_of(obj, seen, now, typed)
        request.conflict = found  # type: ignore[attr-defined]
        request.refusal = [found.line]  # type: ignore[attr-defined]
        request.seen = Seen(history.newest(), now.marks())  # type: ignore[attr-defined]

    def _typed(self, request: HttpRequest, obj: Any) -> tuple[Shown, bool]:
        """The form as it came back, and whether it would change anything of what is stored now."""
        fields = flatten_fieldsets(self.get_fieldsets(request, obj))
        form = self.get_form(request, obj, change=True, fields=fields)(
            request.POST, request.FILES, instance=obj
        )
        formsets, _ = self._create_formsets(request, obj, change=True)  # type: ignore[attr-defined]
        lines = {key: line for one in formsets for key, line in lines_of(one).items()}
        return Shown(form, lines), form.has_changed() or any(one.has_changed() for one in formsets)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponseRedirect:
        """Who deleted it, for those who may know of such objects."""
        kind = ContentType.objects.get_for_model(self.model)
        entry = (
            LogEntry.objects.filter(content_type=kind, object_id=unquote(object_id), action_flag=DELETION)
            .select_related("user")
            .order_by("-pk")
            .first()
            if self.has_view_or_change_permission(request)
            else None
        )
        if entry is None:
            return super()._get_obj_does_not_exist_redirect(request, opts, object_id)  # type: ignore[misc,no-any-return]
        who = f"{entry.user.get_username()} at {entry.action_time:%Y-%m-%d %H:%M:%S} UTC"
        lost = " What you sent was not saved." if request.method == "POST" else ""
        said = f"The {opts.verbose_name} “{entry.object_repr}” was deleted by {who}.{lost}"
        self.message_user(request, said, messages.WARNING)
        return HttpResponseRedirect(reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist"))

    # Sent twice

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """The history keeps the id of a form that added something."""
        message: Any = super().construct_change_message(request, form, formsets, add)
        once = _once(request) if add else ""
        return [*message, {"form": once}] if once else message

    def _made_already(self, request: HttpRequest) -> Any:
        """What this very form has added before; None where it is sent for the first time."""
        once = _once(request)
        if not once:
            return None
        entry = LogEntry.objects.filter(
            user=request.user.pk,
            content_type=ContentType.objects.get_for_model(self.model),
            action_flag=ADDITION,
            action_time__gte=timezone.now() - REMEMBERED,
            change_message__contains=once,
        ).first()
        return self.get_object(request, str(entry.object_id)) if entry else None

    def _of_made(self, request: HttpRequest, made: Any) -> HttpResponse:
        if IS_POPUP_VAR in request.POST:  # to be closed, with what was added
            return self.response_add(request, made)
        said = (
            f"This form was sent before, and added the {self.opts.verbose_name} “{made}”, which this is."
            " Nothing was added or changed a second time."
        )
        self.message_user(request, said, messages.WARNING)
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return HttpResponseRedirect(reverse(name, args=[made.pk]))


def _once(request: HttpRequest) -> str:
    once = request.POST.get(ONCE, "")
    return once if _ID.fullmatch(once) else ""


def _stored(model_admin: Any, request: HttpRequest, obj: Any) -> dict[str, set[str]]:
    """The ids of the stored lines by the prefix of their table."""
    found = {}
    for formset, inline in model_admin.get_formsets_with_inlines(request, obj):
        rows = inline.get_queryset(request).filter(**{formset.fk.name: obj})
        found[formset.get_default_prefix()] = set(map(str, rows.values_list("pk", flat=True)))
    return found
