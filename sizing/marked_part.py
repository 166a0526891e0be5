"""A part of a document that is written from code, between two lines that mark it."""


def with_part(document: str, begin: str, end: str, part: str) -> str:
    """*document* with *part* between its two marks; raises ValueError where they are missing."""
    before, found, rest = document.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the document has no lines {begin} and {end}")
    return f"{before}{begin}\n\n{part}\n\n{end}{after}"
