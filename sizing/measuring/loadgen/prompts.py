"""Prompts of a length, each unlike any other from its first words on, so that no prefix is cached."""

from __future__ import annotations

from random import Random

_TEXT = """
apple river stone cloud music paper table light horse green dance bread chair water house train plant glass
ocean tiger smile clock garden winter summer silver copper window bridge market doctor farmer singer castle
forest island desert valley school letter number circle square planet rocket engine camera mirror candle
basket blanket pillow kitchen hammer ladder needle button pocket jacket butter cheese pepper tomato potato
carrot lemon orange cherry banana monkey rabbit turtle spider eagle snake whale shark mouse sheep goat duck
king queen prince knight sailor pirate soldier teacher student painter writer poet story novel chapter page
line word voice sound noise signal message answer question reason result method system model theory fact
truth idea dream thought memory morning evening night week month year century moment season weather storm
thunder rain snow wind fire smoke metal wood sand rock hill lake beach road street corner tower wall door
roof floor room
"""
WORDS = tuple(_TEXT.split())
LEADING = 4
"""Words that spell the number of a prompt: 151 to the fourth are 520 million prompts."""


class Prompts:
    """The prompts of one level; the same seed gives the same ones."""

    def __init__(self, seed: int, words: int) -> None:
        self._words = max(words, 1)
        self._seed = seed
        rng = Random(f"prompts {seed}")
        self._order = list(WORDS)
        rng.shuffle(self._order)
        self._first = rng.randrange(len(WORDS) ** LEADING)

    def text(self, number: int) -> str:
        """The prompt of a request's number, from 0 on."""
        place = self._first + number
        leading = []
        for _ in range(LEADING):
            place, digit = divmod(place, len(WORDS))
            leading.append(self._order[digit])
        rest = Random(f"{self._seed} {number}").choices(WORDS, k=max(self._words - LEADING, 0))
        return " ".join([*leading, *rest][: self._words])
