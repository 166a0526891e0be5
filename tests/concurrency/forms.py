"""Forms of the admin as a browser sends them back: all that the page filled in."""

from __future__ import annotations

from html.parser import HTMLParser

from django.test import Client

Form = dict[str, str | list[str]]


class _Fields(HTMLParser):
    """The fields of the forms that post, each with what it holds."""

    def __init__(self, form_id: str) -> None:
        super().__init__()
        self.wanted, self.inside, self.found = form_id, False, Form()
        self.area: str | None = None
        self.select: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.inside = given.get("id") == self.wanted if self.wanted else given.get("method") == "post"
        name = given.get("name")
        if not self.inside:
            return
        match tag, given.get("type"):
            case "input", "checkbox" | "radio":
                if name and "checked" in given:
                    self.found[name] = given.get("value") or "on"
            case "input", "submit" | "button":
                pass
            case "input", _ if name:
                self.found[name] = given.get("value") or ""
            case "textarea", _ if name:
                self.area, self.found[name] = name, ""
            case "select", _ if name:
                self.select = name
            case "option", _ if self.select and "selected" in given:
                self.found[self.select] = given.get("value") or ""

    def handle_data(self, data: str) -> None:
        if self.area:
            self.found[self.area] = f"{self.found[self.area]}{data}".lstrip("\n").lstrip("\r\n")

    def handle_endtag(self, tag: str) -> None:
        match tag:
            case "form":
                self.inside = False
            case "textarea":
                self.area = None
            case "select":
                self.select = None


def filled(page: str, form_id: str = "") -> Form:
    """What the form of a page holds: the one of this id, else the last one that posts."""
    fields = _Fields(form_id)
    fields.feed(page)
    fields.found.pop("csrfmiddlewaretoken", None)
    return fields.found


def opened(client: Client, url: str, form_id: str = "") -> Form:
    """The form of a page, opened anew."""
    answer = client.get(url)
    assert answer.status_code == 200
    return filled(answer.content.decode(), form_id)
