"""Result files that people bring: given, looked at, then stored as a measurement or discarded."""

from sizing.admin.imports.pages import BenchImportAdmin
from sizing.models import BenchImport

ADMINS = ((BenchImport, BenchImportAdmin),)
