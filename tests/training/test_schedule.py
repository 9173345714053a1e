"""Which group trains next: a pure function of the configuration and of what the groups have done."""

from dataclasses import replace

import pytest

from nram.training.config import GroupConfig, StageConfig, TrainConfig
from nram.training.group import GroupState
from nram.training.schedule import LAG, LEAD, RECENT, join, next_group, share_of

STAGES = (StageConfig(3, 1000, 8), StageConfig(5, 100, 4))
CONFIG = TrainConfig("access", groups=tuple(GroupConfig(joins=joins, stages=STAGES) for joins in (0, 4, 40)))
FRESH = [GroupState(), GroupState(), GroupState()]
WORKING = GroupState(begun=True, rounds=30, turn=100.0)
DONE = replace(WORKING, done=True)


def test_a_group_joins_once_the_others_have_had_its_checks():
    assert next_group(CONFIG, FRESH) == 0
    assert next_group(CONFIG, [replace(WORKING, rounds=3), *FRESH[1:]]) == 0
    assert next_group(CONFIG, [replace(WORKING, rounds=4), *FRESH[1:]]) == 1
    working = [replace(WORKING, rounds=20), replace(WORKING, rounds=19, turn=101.0)]
    assert next_group(CONFIG, [*working, GroupState()]) == 0
    assert next_group(CONFIG, [working[0], replace(working[1], rounds=20), GroupState()]) == 2


def test_the_group_with_the_least_work_is_next_and_the_first_of_equals():
    states = [WORKING, replace(WORKING, turn=99.0), replace(WORKING, turn=101.0)]
    assert next_group(CONFIG, states) == 1
    assert next_group(CONFIG, [WORKING] * 3) == 0


@pytest.mark.parametrize("stages", [(0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 2, 1)])
def test_a_group_in_a_later_stage_goes_first_whatever_its_work(stages):
    states = [replace(WORKING, stage=stage, turn=1e9 * stage) for stage in stages]
    assert next_group(CONFIG, states) == stages.index(max(stages))


def test_groups_that_are_done_train_no_more_and_a_perfect_member_ends_the_run():
    assert next_group(CONFIG, [DONE, WORKING, WORKING]) == 1
    assert next_group(CONFIG, [DONE] * 3) is None
    assert next_group(CONFIG, [replace(DONE, perfect=1), WORKING, WORKING]) is None
    assert next_group(CONFIG, [replace(WORKING, stage=1, perfect=1), WORKING, WORKING]) == 0  # its stage goes on


def test_a_group_need_not_wait_where_nothing_else_is_left_to_train():
    assert next_group(CONFIG, [replace(DONE, rounds=2), *FRESH[1:]]) == 1


def test_a_configuration_without_groups_trains_until_it_is_done():
    plain = TrainConfig("access", stages=STAGES)
    assert next_group(plain, [GroupState()]) == next_group(plain, [replace(WORKING, stage=1)]) == 0
    assert next_group(plain, [DONE]) is None


def test_a_group_that_joins_does_not_catch_up_with_the_work_of_the_others():
    states = [replace(WORKING, turn=70.0), replace(DONE, turn=5.0), GroupState()]
    join(states, 2)
    assert states[2].turn == 70.0
    first = [GroupState()]
    join(first, 0)
    assert first[0].turn == 0.0


def test_a_group_that_only_waits_for_members_that_halt_goes_first():
    states = [WORKING, replace(WORKING, turn=1e9, enough_at=50), WORKING]
    assert next_group(CONFIG, states) == 1
    assert next_group(CONFIG, [replace(WORKING, stage=1), *states[1:]]) == 0


def test_groups_that_are_among_the_best_or_get_better_have_more_turns():
    def shares(*errors: float, improved_at: int = 30) -> list[float]:
        states = [replace(WORKING, least_error=error, improved_at=improved_at) for error in errors]
        return [share_of(CONFIG, states, index) for index in range(len(states))]

    assert shares(0.2, 0.5, 0.4) == [LEAD, 1, 1]
    assert shares(0.5, 0.2, 0.4) == [1, LEAD, 1]
    assert shares(0.2, 0.24, 0.4) == [LEAD, LEAD, 1]
    assert shares(0.2, 0.5, 0.4, improved_at=30 - RECENT) == [LEAD, 1, 1]
    stuck = 29 - RECENT
    assert shares(0.2, 0.24, 0.4, improved_at=stuck) == [1, LAG, LAG]
    assert shares(0.24, 0.2, 0.4, improved_at=stuck) == [1, LAG, LAG]
    assert shares(0.3, 0.2, 0.4, improved_at=stuck) == [LAG, 1, LAG]
    over = [replace(WORKING, least_error=error, improved_at=stuck) for error in (0.1, 0.3, 0.2)]
    over[0].done = True
    assert share_of(CONFIG, over, 2) == 1  # the best of those that still train
    equal = replace(CONFIG, turns="equal")
    states = [replace(WORKING, least_error=error) for error in (0.2, 0.5)]
    assert [share_of(equal, states, index) for index in range(2)] == [1, 1]
