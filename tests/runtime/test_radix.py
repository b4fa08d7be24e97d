"""The tree against a plain table of prefixes, and its splits, locks and evictions one by one."""

from __future__ import annotations

import random

import pytest

from lmc.runtime.radix import RadixTree, common_length


def put(tree: RadixTree, ids: list[int], slots: list[int]):
    """Insert from the root, as a request without a match would."""
    return tree.extend(tree.root, ids, slots)


def found(tree: RadixTree, ids: list[int], at_most: int | None = None) -> list[int]:
    return tree.path_slots(tree.match(ids, len(ids) if at_most is None else at_most))


def test_what_was_put_in_is_found_by_its_longest_prefix():
    tree = RadixTree()
    put(tree, [1, 2, 3, 4], [10, 11, 12, 13])
    assert found(tree, [1, 2, 3, 4, 5]) == [10, 11, 12, 13]
    assert found(tree, [1, 2, 9]) == [10, 11]
    assert found(tree, [2, 1]) == [] == found(tree, [])
    assert found(tree, [1, 2, 3, 4], at_most=3) == [10, 11, 12]
    assert found(tree, [1, 2, 3, 4], at_most=0) == []
    assert tree.cached_count == 4


@pytest.mark.parametrize("shared", range(1, 6))
def test_a_node_is_split_at_every_length(shared):
    tree = RadixTree()
    first = [1, 2, 3, 4, 5]
    put(tree, first, [10, 11, 12, 13, 14])
    second = first[:shared] + [9, 9]
    node, unused = put(tree, second, list(range(20, 22 + shared)))
    assert unused == list(range(20, 20 + shared)), "slots of tokens that are there already are handed back"
    assert tree.path_slots(node) == [10, 11, 12, 13, 14][:shared] + [20 + shared, 21 + shared]
    assert found(tree, first) == [10, 11, 12, 13, 14]
    assert tree.cached_count == 7


def test_putting_in_what_is_there_gives_all_slots_back():
    tree = RadixTree()
    put(tree, [1, 2, 3], [10, 11, 12])
    node, unused = put(tree, [1, 2], [20, 21])
    assert unused == [20, 21] and tree.path_slots(node) == [10, 11] and tree.cached_count == 3


def test_the_least_recently_used_leaf_goes_first_and_only_as_much_as_is_needed():
    tree = RadixTree()
    put(tree, [1, 1], [10, 11])
    put(tree, [2, 2], [20, 21])
    tree.step += 1
    node = tree.match([1, 1], 2)
    tree.lock(node)
    tree.unlock(node)
    assert tree.evict(1) == [21]
    assert found(tree, [2, 2]) == [20]
    assert tree.evict(2) == [20, 11]
    assert tree.cached_count == 1
    assert tree.evict(5) == [10] and tree.evict(1) == []


def test_a_parent_becomes_a_leaf_when_its_children_went():
    tree = RadixTree()
    put(tree, [1, 2, 3], [10, 11, 12])
    put(tree, [1, 2, 4], [20, 21, 13])
    assert sorted(tree.evict(2)) == [12, 13]
    assert found(tree, [1, 2, 3]) == [10, 11]
    assert sorted(tree.evict(9)) == [10, 11] and not tree.nodes()


def test_locked_paths_stay():
    tree = RadixTree()
    put(tree, [1, 2, 3, 4], [10, 11, 12, 13])
    node = tree.match([1, 2], 2)
    tree.lock(node)
    tree.lock(node)
    assert (tree.locked_count, tree.cached_count) == (2, 2)
    assert sorted(tree.evict(4)) == [12, 13]
    tree.unlock(node)
    assert tree.evict(1) == []
    tree.unlock(node)
    assert tree.evict(1) == [11]
    with pytest.raises(AssertionError, match="0 locks"):
        tree.unlock(node)


def test_a_locked_node_may_be_split_and_its_holder_stays_right():
    tree = RadixTree()
    node, _ = put(tree, [1, 2, 3, 4], [10, 11, 12, 13])
    tree.lock(node)
    upper = tree.match([1, 2, 7], 3)
    assert tree.path_slots(upper) == [10, 11] and tree.path_slots(node) == [10, 11, 12, 13]
    assert upper.locks == 1 and tree.locked_count == 4
    tree.unlock(node)
    assert tree.locked_count == 0 and tree.cached_count == 4


def test_drop_takes_a_branch_as_far_as_nothing_else_needs_it():
    tree = RadixTree()
    put(tree, [1, 2, 3], [10, 11, 12])
    node, _ = put(tree, [1, 2, 4, 5], [20, 21, 13, 14])
    assert tree.drop(node, 0) == [13, 14]
    assert found(tree, [1, 2, 4]) == [10, 11]
    leaf = tree.match([1, 2, 3], 3)
    tree.lock(leaf)
    assert tree.drop(leaf, 0) == []


def test_a_look_goes_on_from_where_the_last_one_ended():
    tree = RadixTree()
    put(tree, [1, 2], [10, 11])
    length, node = tree.match_length([1, 2, 3, 4])
    assert length == 2
    put(tree, [1, 2, 3, 9], [20, 21, 12, 13])
    assert tree.match_length([1, 2, 3, 4], node)[0] == 3 == tree.match_length([1, 2, 3, 4])[0]


def test_common_length_is_that_of_an_element_loop():
    rng = random.Random(0)
    for _ in range(2000):
        ids = [rng.randint(0, 1) for _ in range(rng.randint(0, 12))]
        key = [rng.randint(0, 1) for _ in range(rng.randint(0, 12))]
        start = rng.randint(0, len(ids))
        slow = 0
        while slow < len(key) and start + slow < len(ids) and key[slow] == ids[start + slow]:
            slow += 1
        assert common_length(key, ids, start) == slow


@pytest.mark.parametrize("seed", range(8))
def test_at_random_against_a_table_of_prefixes(seed):
    rng = random.Random(seed)
    tree, table, slot = RadixTree(), {}, 0
    for _ in range(600):
        ids = [rng.randint(0, 1) for _ in range(rng.randint(1, 14))]
        if rng.random() < 0.5:
            slots = list(range(slot, slot + len(ids)))
            slot += len(ids)
            _, unused = put(tree, ids, slots)
            new = {tuple(ids[: i + 1]): s for i, s in enumerate(slots) if tuple(ids[: i + 1]) not in table}
            assert sorted(unused) == sorted(set(slots) - set(new.values()))
            table |= new
        elif rng.random() < 0.6:
            length = next((n for n in range(len(ids), 0, -1) if tuple(ids[:n]) in table), 0)
            assert tree.match_length(ids)[0] == length
            assert found(tree, ids) == [table[tuple(ids[: i + 1])] for i in range(length)]
        else:
            gone = set(tree.evict(rng.randint(1, 5)))
            table = {prefix: s for prefix, s in table.items() if s not in gone}
            assert all(prefix[:-1] in table for prefix in table if len(prefix) > 1), "a prefix went before what stands on it"
        assert tree.cached_count == len(table)


def test_ten_thousand_prefixes_are_put_in_found_and_evicted():
    tree = RadixTree()
    rng = random.Random(3)
    trunk = [rng.randrange(1000) for _ in range(1000)]
    put(tree, trunk, list(range(1000)))
    slot = 1000
    for i in range(10_000):
        node = tree.match(trunk, rng.randrange(1000))
        tree.extend(node, [1000 + i, 1, 2], [slot, slot + 1, slot + 2])
        slot += 3
    assert tree.cached_count == 31_000
    assert len(set(tree.evict(31_000))) == 31_000 and not tree.nodes()
