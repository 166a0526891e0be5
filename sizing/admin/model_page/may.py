"""Who may follow a link from a model's page."""

from django.http import HttpRequest


def may_see(request: HttpRequest, name: str) -> bool:
    """Whether this person may open pages of a kind of object, such as `replica`."""
    return any(request.user.has_perm(f"sizing.{verb}_{name}") for verb in ("view", "change"))
