"""The choice of an object: searched as one types where scripts run, a plain list of few where none do."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.widgets import AutocompleteSelect

OFFERED = 200
"""More objects than that are not written into a page; they can only be searched for."""


class SearchedSelect(AutocompleteSelect):
    """Django's searchable choice, with the objects in it where they are few, so that it needs no script."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        choices: Any = self.choices
        if choices.queryset.order_by()[: OFFERED + 1].count() > OFFERED:
            return super().optgroups(name, value, attr)
        return forms.Select.optgroups(self, name, value, attr)
