"""The desk's pages: Django's admin, as operators of GPU clusters want it. The site registers all of it."""
