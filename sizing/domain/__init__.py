"""The capacity rules as plain values and functions: no Django, no I/O."""
