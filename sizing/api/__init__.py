"""The REST API: it translates between HTTP and the services, and decides nothing itself."""
