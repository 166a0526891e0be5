"""A whole desk under load: many readers, a writer a second, for minutes. See ``__main__.py``."""
