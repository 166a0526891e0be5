"""Which texts are addresses of a replica: no place for a secret, and the same rule for every surface."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from sizing.models import Replica
from sizing.models.fields import endpoint_problem

URL = "must be a URL such as http://10.0.0.7:8000/v1"
USER = "must not have a user or a password"
QUERY = "must not have a query or a fragment"
PORT = "must have a port from 1 to 65535"
FORM = "must have an IP address in its usual form, such as 10.0.0.7 or [fd00::7]"
NO_HOST = "must have the address of one host"
METADATA = "must not be a cloud's metadata service"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://10.0.0.7:8000/v1",
        "HTTPS://llama-0.demo.example/v1/",
        "http://[fd00::7]:8000",
        "http://llama_0",
        "http://h/v1/@x",
        "http://gpu-7.2b.example",
        "http://7.gpu.example",
        "http://127.0.0.1:1/",
        "http://[::1]:65535",
        "http://[::ffff:10.0.0.7]",
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
        ("http://10.0.0.7:65536/", PORT),
        ("http://10.0.0.7:+80/", PORT),
        ("http://2130706433/", FORM),
        ("http://0x7f000001/", FORM),
        ("http://0x7f.1/", FORM),
        ("http://127.1/", FORM),
        ("http://0177.0.0.1/", FORM),
        ("http://127.0.0.1./", FORM),
        ("http://1.2.3.4.5/", FORM),
        ("http://①27.1/", FORM),
        ("http://[1::7::]/", URL),
        ("http://[fe80::1%25eth0]/", URL),
        ("http://0.0.0.0:8000/", NO_HOST),
        ("http://[::]/", NO_HOST),
        ("http://[ff02::1]/", NO_HOST),
        ("http://169.254.169.254/latest", METADATA),
        ("http://[::ffff:169.254.169.254]/", METADATA),
        ("http://[fd00:ec2::254]/", METADATA),
        ("http://a\nb/", "must be one line, without line breaks"),
        ("http://a\0b/", "must not have control characters"),
    ],
)
def test_anything_else_is_refused_without_repeating_it(text: str, problem: str) -> None:
    assert endpoint_problem(text) == problem
    with pytest.raises(ValidationError, match=re.escape(problem)):
        Replica._meta.get_field("endpoint").clean(text, None)


def test_a_metadata_address_that_the_networks_name_alone_is_taken(settings: Any) -> None:
    settings.ENDPOINT_NETWORKS = [ip_network("100.100.100.200/32")]
    assert endpoint_problem("http://100.100.100.200:8000") is None
    settings.ENDPOINT_NETWORKS = [ip_network("100.64.0.0/10")]
    assert endpoint_problem("http://100.100.100.200:8000") == METADATA
