"""Terms from the text that people read in a certificate."""

from __future__ import annotations

import re
from typing import NoReturn

from nram.errors import UsageError
from nram.terms import FALSE, TRUE, Term, both, call, choose, compare, either, negated, number, total, variable

TOKEN = re.compile(r"\s*(<=|[=()*+-]|[0-9]{1,18}|(?:cell|register)\[|[A-Za-z_][A-Za-z0-9_]*)")
MOST_NESTED = 60
MOST_CHARACTERS = 20_000
OPERATORS = ("times", "mod", "div")


def term_from_text(text: str) -> Term:
    """Read a term as `nram.terms.shown` writes it. Raises UsageError for any other text."""
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"a term of {len(text)} characters is too long")
    return _Reader(text).whole()


class _Reader:
    """Reads from left to right: conditions hold comparisons, which hold sums, which hold products."""

    def __init__(self, text: str):
        self.text = text
        self.tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            found = TOKEN.match(text, at)
            if found is None:
                self.fail()
            token, at = found[1], found.end()
            if token.endswith("["):  # the name of a cell holds its address, which may have brackets itself
                depth, end = 1, at
                while depth and end < len(text):
                    depth += {"[": 1, "]": -1}.get(text[end], 0)
                    end += 1
                token, at = token + text[at:end], end
            self.tokens.append(token)
        self.at = 0
        self.nested = 0

    def whole(self) -> Term:
        term = self.condition()
        if self.at < len(self.tokens):
            self.fail()
        return term

    def fail(self) -> NoReturn:
        shortened = self.text if len(self.text) <= 80 else self.text[:77] + "..."
        raise UsageError(f"this is not a term: {shortened!r}")

    def next(self, *wanted: str) -> str | None:
        """The next token, if it is one of these."""
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def need(self, wanted: str) -> None:
        if self.next(wanted) is None:
            self.fail()

    def condition(self) -> Term:
        self.nested += 1
        if self.nested > MOST_NESTED:
            self.fail()
        parts = [self.comparison()]
        word = None
        while (found := self.next("and", "or")) is not None and word in (None, found):
            word = found
            parts.append(self.comparison())
        if found is not None:
            self.fail()
        self.nested -= 1
        return parts[0] if word is None else (both if word == "and" else either)(*parts)

    def comparison(self) -> Term:
        left = self.sum()
        operator = self.next("<=", "=", *OPERATORS)
        if operator is None:
            return left
        right = self.sum()
        if operator in OPERATORS:
            return Term(operator, (left, right))
        return compare("le" if operator == "<=" else "eq", left, right)

    def sum(self) -> Term:
        sign = -1 if self.next("-") else 1
        parts = [(self.product(), sign)]
        if sign == 1 and self.at < len(self.tokens) and self.tokens[self.at] not in ("+", "-"):
            return parts[0][0]  # it may be a condition
        while (found := self.next("+", "-")) is not None:
            parts.append((self.product(), 1 if found == "+" else -1))
        return total(*parts)

    def product(self) -> Term:
        if self.at < len(self.tokens) and self.tokens[self.at].isdigit():
            factor = int(self.tokens[self.at])
            self.at += 1
            return total((self.atom(), factor)) if self.next("*") else number(factor)
        return self.atom()

    def atom(self) -> Term:
        if self.next("not"):
            self.need("(")
            inner = self.condition()
            self.need(")")
            return negated(inner)
        if self.next("("):
            if self.next("if"):
                condition = self.condition()
                self.need("then")
                yes = self.condition()
                self.need("else")
                term = choose(condition, yes, self.condition())
            else:
                term = self.condition()
            self.need(")")
            return term
        if self.at == len(self.tokens) or not (self.tokens[self.at][0].isalpha() or self.tokens[self.at][0] == "_"):
            self.fail()
        name = self.tokens[self.at]
        self.at += 1
        if self.next("("):
            term = call(name, self.condition())
            self.need(")")
            return term
        return {"true": TRUE, "false": FALSE}.get(name, variable(name))
