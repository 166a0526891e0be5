"""A replica that serves no model but has a known capacity: an OpenAI-compatible server for tests and demos.

It works in steps, as inference engines do. A step takes

    t0 + a × sequences in the step + p × prompt tokens prefilled in it        (milliseconds)

and gives each running sequence one token; the first token of a sequence comes at the end of the step that
finished its prompt. Requests wait in one queue, first come first served, for one of `max_seqs` slots and
for their share of the step's prefill budget. The schedule is absolute: a step is due one length after the
one before was due, however late the machine was.

So a request alone has TTFT `t0 + a + p × prompt` and TPOT `t0 + a`, and n streams that are always busy get
`n / (t0 + a × n)` tokens a millisecond. A token of a prompt is a word, parted by white space.

What really happened to each request stands at `/truth`.
"""
