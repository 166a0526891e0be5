"""The built-in load generator: streamed chat completions, timed one by one, in a process of its own."""
