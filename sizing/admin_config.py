"""Puts the desk's own admin site in place of Django's."""

from django.contrib.admin.apps import AdminConfig


class DeskAdminConfig(AdminConfig):
    default_site = "sizing.admin.site.DeskAdminSite"

    def ready(self) -> None:
        super().ready()
        from django.contrib import admin
        from django.contrib.auth.models import Group, User

        from sizing.admin.people import PersonAdmin, RoleAdmin

        # Django registers its own for these while it looks for admins, which is over now.
        admin.site.unregister([User, Group])
        admin.site.register(User, PersonAdmin)
        admin.site.register(Group, RoleAdmin)
