"""The views: thin, and each with the permission that it needs."""
