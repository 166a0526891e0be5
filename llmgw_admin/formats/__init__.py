"""How dates are shown."""
