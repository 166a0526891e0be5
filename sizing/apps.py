"""The app's name for Django."""

from django.apps import AppConfig


class SizingConfig(AppConfig):
    name = "sizing"
    verbose_name = "Capacity"
