"""docs/reading_list.md: every step that changes the text alone was read, and the page says what was found."""

import pytest
from standard.reading_list import PAGE, PLACE, VERDICTS, is_defined, page, verdicts
from standard.steps import prose_steps, steps

from onnxeval.registry import Registry

REGISTRY = Registry.standard()
READ = prose_steps()

#: Steps whose texts mean the same, but whose types make for two kernels.
OTHER_TYPES = {"Dropout-7 -> 10"}


def test_the_numbers_that_the_reading_began_with() -> None:
    everything = list(steps())
    assert (len(everything), sum(step.keeps_signature() for step in everything), len(READ)) == (432, 302, 106)


def test_exactly_the_steps_that_change_the_text_are_judged() -> None:
    assert set(verdicts()) == {str(step) for step in READ}


@pytest.mark.parametrize("step", READ, ids=str)
def test_a_verdict_is_a_sentence_and_names_places_that_exist(step) -> None:
    verdict, sentence = verdicts()[str(step)]
    assert verdict in VERDICTS
    assert sentence[0].isupper() or sentence[0].isdigit()
    assert sentence.endswith(".")
    assert len(sentence.split()) >= (1 if verdict == "same" else 5)
    places = PLACE.findall(sentence)
    assert places or verdict == "same", "what changed, and where the kernel says so"
    for file, name in places:
        assert is_defined(file, name), f"{file} defines no {name}"


@pytest.mark.parametrize("step", READ, ids=str)
def test_where_the_meaning_stays_one_kernel_serves_both(step) -> None:
    if verdicts()[str(step)][0] != "changed" and str(step) not in OTHER_TYPES:
        assert REGISTRY[step.older.key] is REGISTRY[step.newer.key]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run python tests/standard/reading_list.py"
