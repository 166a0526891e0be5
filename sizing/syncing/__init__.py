"""The cluster's own account of itself, brought into the tables: once from a list, or all the time."""
