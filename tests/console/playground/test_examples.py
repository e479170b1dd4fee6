"""The examples of the playground answer as they say, and their documents can be applied."""

import pytest

from sso.console.playground.examples import examples
from sso.console.playground.trial import DocumentQuestion, try_document

NOW = 1_795_000_000


@pytest.mark.parametrize("name", examples())
def test_answers_of_an_example(name: str) -> None:
    example = examples()[name]
    for item in example.questions:
        trial = try_document(example.document, item.question, NOW)
        [answer] = trial.answers
        assert (answer.allowed, trial.failed) == (item.answer, []), item
        assert answer.reasons
    assert {item.answer for item in example.questions} == {True, False}
    everybody = try_document(example.document, DocumentQuestion(rule=example.questions[0].question.rule), NOW)
    assert [answer.login for answer in everybody.answers] == everybody.people
    assert everybody.assertions > 0
