"""Which texts are addresses of a replica: no place for a secret, and the same rule for every surface."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from sizing.models import Replica
from sizing.models.fields import endpoint_problem

URL = "must be a URL such as http://10.0.0.7:8000/v1"
USER = "must not have a user or a password"
QUERY = "must not have a query or a fragment"
PORT = "must have a port from 1 to 65535"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://10.0.0.7:8000/v1",
        "HTTPS://llama-0.demo.example/v1/",
        "http://[fd00::7]:8000",
        "http://llama_0",
        "http://h/v1/@x",
    ],
)
def test_an_address_or_none_is_taken(text: str) -> None:
    assert endpoint_problem(text) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("10.0.0.7:8000", URL),
        ("ftp://10.0.0.7", URL),
        ("javascript:alert(1)", URL),
        ("http:///v1", URL),
        ("http:10.0.0.7", URL),
        ("//10.0.0.7/v1", URL),
        ("http://:8000", URL),
        ("http://[::1", URL),
        ("http://a b/", URL),
        (" http://a/", URL),
        ("http://a\\b/", URL),
        ("http://a:b:80/", URL),
        ("http://u:secret@10.0.0.7/v1", USER),
        ("http://secret@10.0.0.7/v1", USER),
        ("http://@10.0.0.7/v1", USER),
        ("http://10.0.0.7/v1?key=secret", QUERY),
        ("http://10.0.0.7/v1#secret", QUERY),
        ("http://10.0.0.7?", QUERY),
        ("http://10.0.0.7:0/", PORT),
        ("http://10.0.0.7:99999/", PORT),
        ("http://10.0.0.7:x/", PORT),
        ("http://10.0.0.7:/", PORT),
        ("http://a\nb/", "must be one line, without line breaks"),
        ("http://a\0b/", "must not have control characters"),
    ],
)
def test_anything_else_is_refused_without_repeating_it(text: str, problem: str) -> None:
    assert endpoint_problem(text) == problem
    with pytest.raises(ValidationError, match=problem):
        Replica._meta.get_field("endpoint").clean(text, None)
