"""Dates and times: ISO, and the zone said."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = r"Y-m-d H:i \U\T\C"
