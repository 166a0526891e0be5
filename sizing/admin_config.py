"""Puts the desk's own admin site in place of Django's."""

from django.contrib.admin.apps import AdminConfig


class DeskAdminConfig(AdminConfig):
    default_site = "sizing.admin.site.DeskAdminSite"
