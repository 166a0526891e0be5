"""Users and groups. Nobody makes anybody mightier than they are themselves, nor changes who is.

Not among what the site registers at its start: Django's own admins of them need a site.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from sizing.admin.base import flag
from sizing.admin.fields import label_date_and_time
from sizing.admin.meanwhile import DeletingAdmin, SavingAdmin
from sizing.models import ApiToken
from sizing.models.history import DESK

NAMES_SHOWN = 5


def own(request: HttpRequest) -> QuerySet[Permission]:
    """The permissions that the caller has, and so may give."""
    if request.user.is_superuser:
        return Permission.objects.all()
    mine = Q(user=request.user.pk) | Q(group__user=request.user.pk)
    return Permission.objects.filter(mine).distinct()


def may_no_more(request: HttpRequest, who: User | Group) -> bool:
    """Whether a user (also one who is not active) or a group may nothing that the caller may not."""
    if request.user.is_superuser:
        return True
    if isinstance(who, User):
        if who.is_superuser:
            return False
        theirs = Permission.objects.filter(Q(user=who.pk) | Q(group__user=who.pk))
    else:
        theirs = who.permissions.all()
    return not theirs.exclude(pk__in=own(request).values("pk")).exists()


def is_desk(who: User | Group) -> bool:
    """Whether this account signs what nobody in particular does; nobody changes it, also no superuser."""
    return isinstance(who, User) and who.username == DESK


class NoMightier:
    """For the admins of users and groups: what may be changed, and which permissions may be given."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may: bool = super().has_change_permission(request, obj)  # type: ignore[misc]
        return may and (obj is None or (may_no_more(request, obj) and not is_desk(obj)))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may: bool = super().has_delete_permission(request, obj)  # type: ignore[misc]
        return may and (obj is None or (may_no_more(request, obj) and not is_desk(obj)))

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        if db_field.remote_field.model is Permission:
            given = Permission.objects.filter(pk__in=own(request).values("pk"))
            kwargs["queryset"] = given.order_by("content_type__app_label", "content_type__model", "codename")
        elif db_field.remote_field.model is Group and not request.user.is_superuser:
            beyond = Permission.objects.exclude(pk__in=own(request).values("pk"))
            kwargs["queryset"] = Group.objects.exclude(permissions__in=beyond)
        return super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]


class PersonAdmin(NoMightier, SavingAdmin, DeletingAdmin, UserAdmin):  # type: ignore[type-arg]
    """Django's own, with words for what it shows as signs."""

    list_display = ("username", "email", "first_name", "last_name", "staff", "active")
    staff = flag("is_staff", "staff", "staff")
    active = flag("is_active", "active", "active", "not active")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = (*super().get_readonly_fields(request, obj), "last_login")
        return found if request.user.is_superuser else (*found, "is_superuser")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        label_date_and_time(form.base_fields, "date_joined")
        return form

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """A new name is told with the old one, for the history tells all that somebody did by the new."""
        message: Any = super().construct_change_message(request, form, formsets, add)
        if not add and "username" in form.changed_data:
            renamed = f"username {form.initial['username']} → {form.cleaned_data['username']}"
            message[0]["changed"]["fields"].append(renamed)
        return message

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[Any, Any], set[Any], list[Any]]:
        """Who changed anything stays, or the history would go too; and so does the desk itself."""
        if any(map(is_desk, objs)):
            refusal = f"{DESK} is the account that signs what commands and syncs do; it stays."
            return [], {}, set(), [refusal]
        told = LogEntry.objects.filter(user__in=objs).order_by("user__username")
        names = list(told.values_list("user__username", flat=True).distinct()[: NAMES_SHOWN + 1])
        if names:
            said = ", ".join(names[:NAMES_SHOWN]) + (" and others" if len(names) > NAMES_SHOWN else "")
            refusal = (
                f"The history tells what {said} did, which would be lost."
                " Take “Active” away instead: who is not active cannot sign in."
            )
            return [], {}, set(), [refusal]
        if any(not token.is_over for token in ApiToken.objects.filter(user__in=objs)):
            return [], {}, set(), ["Some of their API tokens still let somebody in. Revoke these first."]
        found: tuple[list[Any], dict[Any, Any], set[Any], list[Any]] = super().get_deleted_objects(
            objs, request
        )
        return found


class RoleAdmin(NoMightier, SavingAdmin, DeletingAdmin, GroupAdmin):
    """Django's own of groups."""
