"""Measurements, the runs that take them, and asking for one."""

from sizing.admin.measured.measurements import MeasurementAdmin
from sizing.admin.measured.runs import RefreshAdmin
from sizing.models import Measurement, Refresh

ADMINS = ((Measurement, MeasurementAdmin), (Refresh, RefreshAdmin))
