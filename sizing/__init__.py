"""The capacity desk: its numbers (``domain``), its rows (``models``), and the ways in."""
