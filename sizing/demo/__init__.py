"""The demo: a fleet to look at, and simulated replicas in it that can really be measured."""
