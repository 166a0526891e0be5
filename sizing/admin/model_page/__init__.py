"""What a model's page says beside its form: its variants, and where its replicas stand."""

from sizing.admin.model_page.replicas import replicas_part
from sizing.admin.model_page.variants import variants_part

__all__ = ["replicas_part", "variants_part"]
