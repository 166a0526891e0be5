"""Puts the desk's own admin site in place of Django's."""

from django.contrib.admin.apps import AdminConfig


class DeskAdminConfig(AdminConfig):
    default_site = "sizing.admin.site.DeskAdminSite"

    def ready(self) -> None:
        super().ready()
        from django.contrib import admin
        from django.contrib.auth.models import User

        from sizing.admin.people import PersonAdmin

        # Django registers its own for users while it looks for admins, which is over now.
        admin.site.unregister(User)
        admin.site.register(User, PersonAdmin)
