"""How the desk itself is: what probes and Prometheus are told. Nothing here writes."""
