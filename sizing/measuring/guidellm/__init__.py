"""GuideLLM as a maker of load: its command runs once for each level, and its report is read like any file.

It has to be installed apart, since it brings torch; the settings given to it are those of version 0.8.
What it cannot do:

- A name is resolved and checked before the run. Over http the address that was found is the one connected
  to; over https GuideLLM resolves the name again for each connection, so whoever owns the name can point
  it elsewhere in between. Redirects are not followed, and no proxy is used.
- The seconds and the requests of a level are capped, its bytes are not.
- Where the server sends no usage, a chunk of the stream counts as one token.
"""

from sizing.measuring.guidellm.maker import GuideLlm

__all__ = ["GuideLlm"]
