from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.renames import Renames

TEXTS = st.text(alphabet="ab_A(), =\n\t1é", max_size=30)


def learnt(*pairs: tuple[str, str]) -> Renames:
    renames = Renames()
    for source, said in pairs:
        renames.learn(source, said)
    return renames


def test_a_rule_holds_after_two_confirmations_and_not_after_one() -> None:
    renames = Renames()
    assert not renames.learn("def foo(x):", "def bar(x):")
    assert renames.apply(["foo"]) == ["foo"]
    assert renames.learn("    foo(1)", "    bar(1)")
    assert renames.apply(["foo + food - foo.foo_x"]) == ["bar + food - bar.foo_x"]


def test_two_words_that_share_a_part_make_a_rule_for_parts_in_every_case() -> None:
    renames = learnt(("foo = 1", "bar = 1"), ("foo_x = 1", "bar_x = 1"))
    assert renames.apply(["foo, Foo, FOO, my_foo_y, MyFoo, food"]) == ["bar, Bar, BAR, my_bar_y, MyBar, food"]


def test_a_name_of_another_number_of_words_is_learnt_in_every_case() -> None:
    longer = learnt(("user = 1", "account_holder = 1"), ("get_user()", "get_account_holder()"))
    assert longer.apply(["user_id, User, USER_ID, getUser, userId, superuser"]) == [
        "account_holder_id, AccountHolder, ACCOUNT_HOLDER_ID, getAccountHolder, accountHolderId, superuser"
    ]
    shorter = learnt(("max_size = 1", "limit = 1"), ("class MaxSize:", "class Limit:"))
    assert shorter.apply(["a_max_size_b, MAX_SIZE, setMaxSize, max, size, maxi_size"]) == [
        "a_limit_b, LIMIT, setLimit, max, size, maxi_size"
    ]
    shorter.learn("old_max_size = 2", "old_max_size = 2")
    assert not shorter.parts


def test_one_word_seen_twice_makes_no_rule_for_parts() -> None:
    renames = learnt(("foo_x = 1", "bar_x = 1"), ("foo_x = 2", "bar_x = 2"))
    assert renames.apply(["foo_x, foo_y"]) == ["bar_x, foo_y"]


def test_a_rule_is_unlearnt_for_good_when_its_old_name_stays() -> None:
    renames = learnt(("foo = 1", "bar = 1"), ("foo = 2", "bar = 2"))
    assert renames.learn("foo = 3", "foo = 3")
    assert not renames
    renames.learn("foo = 4", "bar = 4")
    renames.learn("foo = 5", "bar = 5")
    assert renames.apply(["foo"]) == ["foo"]


def test_the_name_seen_more_often_wins() -> None:
    seen = [("foo", "one"), ("foo", "one"), ("foo", "two"), ("foo", "two"), ("foo", "two")]
    assert learnt(*((f"{old} = 1", f"{new} = 1") for old, new in seen)).apply(["foo"]) == ["two"]


def test_lines_that_do_not_correspond_teach_nothing() -> None:
    renames = learnt(("foo = 1", "something(else_)"), ("a b c d", "e f g h"), ("x = 1", "x = 2"), ("x = 1", "x = 2"))
    assert not renames


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=8), st.lists(TEXTS, max_size=4))
def test_any_lines_may_come_and_lines_stay_lines(pairs: list[tuple[str, str]], lines: list[str]) -> None:
    renames = learnt(*pairs)
    applied = renames.apply(lines)
    assert len(applied) == len(lines)
    if not renames:
        assert applied == lines
