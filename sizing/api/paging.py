"""Pages of a collection."""

from __future__ import annotations

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request


class Pages(PageNumberPagination):
    """`page` from 1 and `page_size` up to 1000; a larger size counts as 1000."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000
    page_query_description = "Number of the page, from 1."
    page_size_query_description = "Results on a page, from 1; more than 1000 counts as 1000."
    invalid_page_message = "there is no page {page_number}"

    def get_page_size(self, request: Request) -> int:
        given = request.query_params.get("page_size")
        if given is None:
            return self.page_size
        # A long number is larger than 1000 whatever it is.
        size = int(given[:9]) if given.isascii() and given.isdigit() else 0
        if size < 1:
            raise ValidationError({"page_size": ["must be a whole number from 1 to 1000"]})
        return min(size, self.max_page_size)
