"""What Prometheus is told: which metrics there are, and their values now."""
