"""Answers that were given: to look at, to compute again, and to ask anew."""

from sizing.admin.answers.pages import AnswerAdmin
from sizing.models import Answer

ADMINS = ((Answer, AnswerAdmin),)
