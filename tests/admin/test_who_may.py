"""Every address × who asks × method, from the resolver: a page that is not in the tables here fails.

The groups lie within each other, so an address needs one word for each method: the least that may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.urls import resolve
from django.urls.exceptions import Resolver404

from sizing.models import InventoryChange
from sizing.services.tokens import create_token
from tests.admin.cluster import person
from tests.admin.everything import address, make_one_of_each, routes

ROLES = ANYONE, STAFF, VIEWER, OPERATOR, ADMINISTRATOR, SUPERUSER = (
    "anyone",
    "staff",
    "viewer",
    "operator",
    "administrator",
    "superuser",
)
NOBODY = "nobody"
Least = tuple[str, str]
"""Who at least may GET, and who may POST."""

LOOK, WORK = (VIEWER, VIEWER), (OPERATOR, OPERATOR)

# Who may look at a table's rows, and who may add, change and delete them.
TABLES: dict[str, Least] = {
    **dict.fromkeys(
        (
            *("sizing_node", "sizing_gpu", "sizing_replica"),
            *("sizing_servedmodel", "sizing_variant", "sizing_benchprofile"),
            *("sizing_measurement", "sizing_refresh", "sizing_target"),
            *("sizing_benchimport", "sizing_clusterimport", "sizing_inventoryload"),
        ),
        (VIEWER, OPERATOR),
    ),
    "sizing_answer": (VIEWER, NOBODY),
    **dict.fromkeys(("sizing_mappingrule", "sizing_clustersync"), (VIEWER, ADMINISTRATOR)),
    **dict.fromkeys(("sizing_apitoken", "auth_user", "auth_group"), (ADMINISTRATOR, ADMINISTRATOR)),
}
OWN_PAGES: dict[str, Least] = {
    "index": (STAFF, STAFF),
    "history": (STAFF, STAFF),
    "ask": LOOK,
    "board_live": LOOK,
    "login": (ANYONE, ANYONE),
    "logout": (ANYONE, ANYONE),
    "password_change": (STAFF, STAFF),
    "password_change_done": (STAFF, STAFF),
    "autocomplete": (VIEWER, STAFF),  # POST is no method of it
    "jsi18n": (STAFF, STAFF),
    "view_on_site": (STAFF, STAFF),  # nothing here has a page beside the admin
    "app_list": (STAFF, STAFF),
    "admin/<url>": (STAFF, STAFF),  # nowhere
    "home": (ANYONE, ANYONE),
    "healthz": (ANYONE, ANYONE),
    "live": (ANYONE, ANYONE),
    "ready": (ANYONE, ANYONE),
    "metrics": LOOK,
    # What tables have beside the pages of all of them, and where these differ.
    "sizing_servedmodel_target": LOOK,  # who may only look saves nothing: see below
    "sizing_servedmodel_refresh": WORK,
    "sizing_measurement_file": LOOK,
    "sizing_measurement_compare": LOOK,
    "sizing_refresh_live_rows": LOOK,
    "sizing_refresh_live": LOOK,
    "sizing_refresh_cancel": WORK,
    "sizing_refresh_retry": WORK,
    "sizing_refresh_add": (NOBODY, NOBODY),
    "sizing_refresh_change": (VIEWER, NOBODY),
    "sizing_benchimport_live": LOOK,
    **{f"sizing_benchimport_{act}": WORK for act in ("store", "leave-out", "force", "discard")},
    "sizing_benchimport_change": (VIEWER, NOBODY),
    "sizing_inventoryload_export": LOOK,
    **{f"sizing_inventoryload_{act}": WORK for act in ("load", "again", "discard")},
    "sizing_inventoryload_change": (VIEWER, NOBODY),
    # What was loaded or imported is history.
    **dict.fromkeys(("sizing_inventoryload_delete", "sizing_clusterimport_delete"), (SUPERUSER, SUPERUSER)),
    "sizing_clusterimport_live": LOOK,
    **{f"sizing_clusterimport_{act}": WORK for act in ("import", "partial", "cancel", "discard")},
    "sizing_clusterimport_change": (VIEWER, NOBODY),
    "sizing_clustersync_live": LOOK,
    "sizing_clustersync_now": WORK,  # it only asks for a fresh list
    "sizing_clustersync_changelist": (VIEWER, NOBODY),
    "sizing_clustersync_add": (NOBODY, NOBODY),
    "sizing_clustersync_delete": (NOBODY, NOBODY),
    "sizing_clustersync_change": (VIEWER, NOBODY),
    "sizing_mappingrule_pods": LOOK,
    "sizing_apitoken_add": (NOBODY, NOBODY),
    "sizing_apitoken_change": (ADMINISTRATOR, NOBODY),
    "auth_user_password_change": (ADMINISTRATOR, ADMINISTRATOR),
}
# Of the API: who at least may GET, POST, PUT, PATCH, DELETE. 405 is an answer too.
READ_ONLY = (VIEWER, OPERATOR, OPERATOR, OPERATOR, OPERATOR)
DOCUMENT = (STAFF,) * 5
API: dict[str, tuple[str, ...]] = {
    **{
        f"{one}-{page}": READ_ONLY
        for one in ("model", "profile", "variant", "node", "replica", "measurement", "target", "refresh")
        for page in ("list", "detail")
    },
    "import-list": READ_ONLY,
    "import-detail": READ_ONLY,
    "import-store": READ_ONLY,
    "import-files": READ_ONLY,
    "model-refresh": READ_ONLY,
    "model-target": READ_ONLY,
    **dict.fromkeys(("answer-list", "answer-detail", "answer-replay"), (VIEWER, *(SUPERUSER,) * 4)),
    "measurement-report": READ_ONLY,
    "refresh-cancel": READ_ONLY,
    "refresh-retry": READ_ONLY,
    "kubernetes": READ_ONLY,
    "inventory": (VIEWER, VIEWER, OPERATOR, VIEWER, VIEWER),  # only GET and PUT are methods of it
    "api": DOCUMENT,
    "schema": DOCUMENT,
    "docs": DOCUMENT,
    "api/v1/": DOCUMENT,
}


def least_of_page(name: str) -> Least | None:
    """Who at least may GET and POST a page; None where the tables here do not know it."""
    if name in OWN_PAGES:
        return OWN_PAGES[name]
    if name.startswith("admin/") and name.endswith("/<object_id>/"):
        return (STAFF, STAFF)  # it leads on to the page of the object
    table, _, page = name.rpartition("_")
    if table not in TABLES:
        return None
    look, work = TABLES[table]
    kinds = {
        "changelist": (look, look),
        "csv": (look, look),
        "history": (look, look),
        "change": (look, work),
        "add": (work, work),
        "delete": (work, work),
    }
    return kinds.get(page)


def may(role: str, least: str) -> bool:
    """Whether a role is at least another."""
    return least != NOBODY and ROLES.index(role) >= ROLES.index(least)


class Caller:
    """A role with its client, who signs in again before each request."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.client = Client()
        if role != ANYONE:
            user = person(f"a {role}", superuser=role == SUPERUSER)
            user.groups.set(Group.objects.filter(name=role))
            self.client.force_login(user)
        self._cookies = self.client.cookies.output(header="", sep=";")

    def ask(self, method: str, url: str) -> tuple[bool, Any]:
        """Whether it is answered, not refused, and the answer; what it writes is undone.

        What is refused must write nothing.
        """
        cache.clear()
        self.client.cookies = SimpleCookie(self._cookies)
        named: Any = {}
        if method == "post" and url.startswith("/admin/"):
            named = {"data": {}}
        elif method not in ("get", "head"):
            named = {"data": "{}", "content_type": "application/json"}
        with transaction.atomic():
            before = _written()
            answer = getattr(self.client, method)(url, **named)
            login = answer.status_code == 302 and "/login/" in answer["Location"]
            answered = answer.status_code not in (401, 403) and not login
            assert answered or _written() == before, (self.role, method, url)
            transaction.set_rollback(True)
        assert answer.status_code < 500, (self.role, method, url)
        return answered, answer


def _written() -> tuple[int, int]:
    return InventoryChange.objects.count(), LogEntry.objects.count()


@pytest.fixture
def callers(groups: None) -> list[Caller]:
    return [Caller(role) for role in ROLES]


@pytest.fixture
def rows(db: None) -> dict[str, Any]:
    return make_one_of_each()


PAGES = [(name, path) for name, path in dict.fromkeys(routes()) if not path.startswith("api/")]
CALLS = [(name, path) for name, path in dict.fromkeys(routes()) if path.startswith("api/")]


def test_who_may_on_every_page_and_each_link_and_button_leads_where_one_may(
    callers: list[Caller], rows: dict[str, Any]
) -> None:
    unknown = [name for name, _ in PAGES if least_of_page(name) is None]
    assert unknown == [], "say in the tables above who may open and who may use it"
    wrong = []
    for name, pattern in PAGES:
        url = address(name, pattern, rows)
        if name == "autocomplete":
            url += "?app_label=sizing&model_name=variant&field_name=model"
        least = least_of_page(name) or (NOBODY, NOBODY)
        for caller in callers:
            for method, who in zip(("get", "post"), least, strict=True):
                answered, answer = caller.ask(method, url)
                if answered != may(caller.role, who):
                    wrong.append(f"{method} {url} by {caller.role}: {answer.status_code}")
                elif method == "get" and answer.status_code == 200 and caller.role != ANYONE:
                    wrong += _leads_astray(caller.role, url, answer)
        # Who may not open a page may not do so by another method either.
        refused = [caller for caller in callers if not may(caller.role, least[0])]
        if refused and name != "autocomplete":
            for method in ("head", "put", "patch", "delete"):
                if refused[-1].ask(method, url)[0]:
                    wrong.append(f"{method} {url} by {refused[-1].role}")
    assert wrong == []


def _leads_astray(role: str, page: str, answer: Any) -> list[str]:
    """Links and buttons of a page that lead where its reader may not."""
    if "html" not in answer.headers.get("Content-Type", ""):
        return []
    body = answer.content.decode()
    found = []
    for method, target in _targets(body):
        url = urlsplit(urljoin(page, unescape(target)))
        if url.netloc or not url.path.startswith("/admin/"):
            continue
        try:
            name = resolve(url.path).url_name or ""
        except Resolver404:
            found.append(f"{page} of {role} leads to {url.path}, which is nowhere")
            continue
        least = least_of_page(name)
        if least is not None and not may(role, least[method == "post"]):
            found.append(f"{page} of {role} has a way to {method} {url.path}")
    return found


def _targets(body: str) -> Iterator[tuple[str, str]]:
    for link in re.findall(r'<a\b[^>]*\bhref="([^"#]+)"', body):
        yield "get", link
    for form in re.findall(r"<form\b.*?</form>", body, re.DOTALL):
        head = form[: form.index(">")]
        if "<button" not in form and 'type="submit"' not in form:
            continue  # Django's own form of an object that may only be looked at
        action = re.search(r'\baction="([^"]*)"', head)
        yield "post" if 'method="post"' in head else "get", action[1] if action else ""


def test_who_may_at_every_address_of_the_api(callers: list[Caller], rows: dict[str, Any]) -> None:
    assert [name for name, _ in CALLS if name not in API] == [], "say in the table above who may call it"
    wrong = []
    for name, pattern in CALLS:
        url = address(name, pattern, rows)
        for caller in callers:
            for method, who in zip(("get", "post", "put", "patch", "delete"), API[name], strict=True):
                answered, answer = caller.ask(method, url)
                if answered != may(caller.role, who):
                    wrong.append(f"{method} {url} by {caller.role}: {answer.status_code}")
    assert wrong == []


def test_a_token_that_may_read_only_reads_at_every_address_and_writes_at_none(rows: dict[str, Any]) -> None:
    person("chief", superuser=True)
    client = Client(headers={"authorization": f"Bearer {create_token('chief', 'x', read_only=True)}"})
    wrong = []
    for name, pattern in CALLS:
        url = address(name, pattern, rows)
        for method in ("get", "head", "options", "post", "put", "patch", "delete"):
            cache.clear()
            before = _written()
            answer = getattr(client, method)(url)
            refused = answer.status_code == 403
            if refused != (method in ("post", "put", "patch", "delete")) or answer.status_code >= 500:
                wrong.append(f"{method} {url}: {answer.status_code}")
            assert _written() == before, (method, url)
    assert wrong == []
    for name, pattern in PAGES:  # a token is for the API alone
        least = least_of_page(name) or (NOBODY, NOBODY)
        if least[0] != ANYONE and name != "metrics":
            answer = client.get(address(name, pattern, rows))
            assert (answer.status_code, "/login/" in answer.get("Location", "")) == (302, True), name


# The groups ----------------------------------------------------------------------------------------


def permissions(group: str) -> set[str]:
    found = Permission.objects.filter(group__name=group)
    return {f"{p.content_type.app_label}.{p.codename}" for p in found.select_related("content_type")}


def test_every_table_is_in_the_groups(groups: None) -> None:
    every = {
        f"sizing.{verb}_{table._meta.model_name}"
        for table in apps.get_app_config("sizing").get_models()
        for verb in table._meta.default_permissions
    }
    views = {name for name in every if name.startswith("sizing.view_")}
    edits = every - views
    people = {
        f"auth.{verb}_{one}" for one in ("user", "group") for verb in ("add", "change", "delete", "view")
    }
    assert permissions("viewer") == views - {"sizing.view_apitoken"}
    assert permissions("administrator") == views | edits | people
    operator = permissions("operator")
    assert permissions("viewer") < operator < permissions("administrator")
    for table in ("node", "servedmodel", "measurement", "target", "refresh", "benchimport", "inventoryload"):
        assert {f"sizing.{verb}_{table}" for verb in ("add", "change", "delete")} <= operator
    for table in ("mappingrule", "clustersync", "apitoken"):
        assert not {f"sizing.{verb}_{table}" for verb in ("add", "change", "delete")} & operator
