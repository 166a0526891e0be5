"""`manage.py target MODEL TOK_PER_SEC`: the target answer on a terminal."""

from __future__ import annotations

import json
from typing import IO, Any, cast

from django.core.management.base import CommandParser
from django.utils import timezone
from rich.console import Console
from rich.table import Table

from sizing.domain.answer import Answer
from sizing.domain.supposing import FORMS, in_words
from sizing.domain.wording import names, number, plural
from sizing.management.desk_command import DeskCommand
from sizing.models import Answer as AnswerRow
from sizing.services import answers
from sizing.services.answers import Asker
from sizing.services.targets import find, parse_question

_PIPE_WIDTH = 120
VICTIMS_SHOWN = 20


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        # Rich would end with exit 1, which means here that it does not fit.
        raise BrokenPipeError


class Command(DeskCommand):
    """Exit 0 where it fits, 1 where it does not, 2 on an error."""

    help = "How many replicas a model needs for so many tokens per second, and whether they fit."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model", help="name of the model")
        parser.add_argument("tokens_per_sec", metavar="tok_per_sec", help="output tokens per second")
        parser.add_argument("--profile", help="bench profile; else the model's own")
        parser.add_argument("--variant", help="variant; else the first that is measured")
        parser.add_argument("--utilization", help="share of the measured throughput to plan with, in (0, 1]")
        parser.add_argument(
            "--as-if",
            action="append",
            metavar="WHAT",
            help=f"answer as if this were so, which changes nothing; may be given again: {', '.join(FORMS)}",
        )
        parser.add_argument("--nodes", action="store_true", help="show every node, not only their counts")
        parser.add_argument("--json", action="store_true", help="the answer as the API gives it")

    def handle(self, *args: Any, **options: Any) -> None:
        params = {
            name: [options[name]]
            for name in ("tokens_per_sec", "profile", "variant", "utilization")
            if options[name] is not None
        }
        if options["as_if"]:
            params["as_if"] = options["as_if"]
        answer, current = find(parse_question(options["model"], params))
        now = timezone.now()
        kept = answers.note(answer, current, Asker(AnswerRow.Channel.COMMAND), now)
        if options["json"]:
            form = answer.as_dict(now, explain_nodes=options["nodes"])
            form |= {"answer_id": str(kept)} if kept else {}
            self.stdout.write(json.dumps(form, indent=2, ensure_ascii=False))
        else:
            self._show(answer, options["nodes"])
        answers.flush()
        if not answer.fits:
            raise SystemExit(1)

    def _show(self, answer: Answer, every_node: bool) -> None:
        console = _Screen(file=cast(IO[str], self.stdout), highlight=False, soft_wrap=True, markup=False)
        if not console.is_terminal:
            console.width = _PIPE_WIDTH
        form = answer.as_dict(timezone.now())
        if answer.question.as_if:
            console.print(f"as if {' and '.join(map(in_words, answer.question.as_if))}:")
        console.print(headline(answer), style="bold")
        figures = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for name, value in _figures(answer, form):
            figures.add_row(name, value)
        console.print(figures)
        for warning in form["warnings"]:
            console.print(f"warning: {warning}", style="yellow")
        if answer.reach.victims:
            self._show_victims(console, form["preemption"])
        if not answer.fits:
            console.print("blocked:", style="bold red")
            for sentence in answer.blocked:
                console.print(f"  {sentence}")
        console.print(_node_table(answer) if every_node else _code_table(answer))

    def _show_victims(self, console: Console, preemption: dict[str, Any]) -> None:
        proven = (
            "proven: nobody cheaper, and no fewer, would do"
            if preemption["optimal"]
            else "not proven minimal"
        )
        console.print(f"would have to stop ({proven}):", style="bold")
        table = Table("replica", "model", "priority", "tok/s lost", "nodes", box=None, header_style="dim")
        for victim in preemption["victims"][:VICTIMS_SHOWN]:
            lost = "unknown" if victim["tok_per_sec"] is None else f"{victim['tok_per_sec']:,}"
            table.add_row(
                victim["replica"], victim["model"], number(victim["priority"]), lost, names(victim["nodes"])
            )
        console.print(table)
        rest = len(preemption["victims"]) - VICTIMS_SHOWN
        if rest > 0:
            console.print(f"  and {number(rest)} more (--json has all)")
        for model in preemption["models"]:
            left = f"{number(model['left'])} left, minimum {number(model['min_replicas'])}"
            console.print(f"  {model['model']}: {number(model['stopped'])} stopped, {left}")
        if preemption["why"]:
            console.print("  why nobody cheaper:")
        for sentence in preemption["why"]:
            console.print(f"  {sentence}")


def headline(answer: Answer) -> str:
    """The answer in one sentence."""
    counted = answer.count
    begin = (
        f"{counted.model.name} needs {plural(counted.needed, 'replica')} for"
        f" {number(answer.question.tokens_per_sec)} tok/s; {_verb(counted.current, 'run')}"
    )
    if not counted.more:
        return f"{begin}: served" + (f", {number(counted.surplus)} to spare" if counted.surplus else "")
    if answer.fits and answer.by_preempting:
        stops = plural(len(answer.reach.victims), "replica")
        return f"{begin}: the other {_verb(counted.more, 'fit')} only by stopping {stops} of lower priority"
    if answer.fits:
        return f"{begin}: the other {_verb(counted.more, 'fit')}"
    return f"{begin}: {number(answer.room)} of the other {number(counted.more)} {_fit(answer.room)}"


def _verb(count: int, verb: str) -> str:
    return f"{number(count)} {verb}{'s' if count == 1 else ''}"


def _fit(count: int) -> str:
    return "fits" if count == 1 else "fit"


def _figures(answer: Answer, form: dict[str, Any]) -> list[tuple[str, str]]:
    counted, measured = answer.count, answer.count.measurement
    quality = f", {measured.bound}" if measured.bound else ""
    stale = ", stale" if form["measurement"]["stale"] else ""
    return [
        ("variant", f"{counted.variant.name} on {measured.profile}"),
        (
            "one replica",
            f"{number(measured.tok_per_sec)} tok/s"
            f" ({measured.source}, {measured.measured_at:%Y-%m-%d}{quality}{stale})",
        ),
        ("running now", f"{number(counted.current)} replicas, {number(counted.current_tok_per_sec)} tok/s"),
        ("needed", number(counted.needed)),
        ("more", number(counted.more)),
        (
            "room",
            f"{number(answer.room)} ({number(counted.free_room)} free,"
            f" {number(answer.by_preempting)} by preempting)",
        ),
        ("fits", "yes" if answer.fits else "no"),
    ]


def _code_table(answer: Answer) -> Table:
    table = Table("reason", "nodes", "which", box=None, header_style="dim", padding=(0, 2, 0, 0))
    by_code: dict[str, list[str]] = {}
    for node, code in zip(answer.fleet.hardware.nodes, answer.survey.codes, strict=True):
        by_code.setdefault(code, []).append(node.name)
    for code, there in sorted(by_code.items(), key=lambda item: (-len(item[1]), item[0])):
        table.add_row(code, number(len(there)), names(there))
    return table


def _node_table(answer: Answer) -> Table:
    table = Table("node", "fits", "reason", "", "", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for node in answer.nodes:
        after = node["after"]
        then = f"stops {names(after['stops'])}, then takes {number(after['fits'])}" if after else ""
        table.add_row(node["node"], number(node["fits"]), node["code"], node["say"], then)
    return table
