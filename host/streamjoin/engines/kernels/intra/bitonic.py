"""Merging sorted runs by vectors: a bitonic network of two times eight tuples.

Inoue et al. and Balkesen et al. (the study's MWay) merge by such networks. The eight lowest of two
sorted vectors leave, the eight highest stay, and the next vector comes from the run whose head is
lower. A merge waits for its last network, so two independent merges take turns.
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
"""Tuples of a vector: 64 bytes."""

LEFT, LEFT_END, RIGHT, RIGHT_END, INDEX = range(5)
"""Words of a merge's state: the next tuple of each run and the run's end, and the next output."""

STATE_WORDS = 5

_WORD = ir.IntType(64)
_WORDS = ir.VectorType(_WORD, LANES)
_LANE = ir.IntType(32)
_STAGES = (
    ((4, 5, 6, 7, 0, 1, 2, 3), (0, 1, 2, 3, 12, 13, 14, 15)),
    ((2, 3, 0, 1, 6, 7, 4, 5), (0, 1, 10, 11, 4, 5, 14, 15)),
    ((1, 0, 3, 2, 5, 4, 7, 6), (0, 9, 2, 11, 4, 13, 6, 15)),
)
"""Each stage's partners, and which lanes take the lower and the higher of them."""


def _lanes(lanes: Sequence[int]) -> Any:
    return ir.Constant(ir.VectorType(_LANE, LANES), list(lanes))


def _ordered(builder: ir.IRBuilder, one: Any, other: Any) -> tuple[Any, Any]:
    """Return the lower and the higher of two vectors, lane by lane."""
    is_lower = builder.icmp_unsigned("<", one, other)
    return builder.select(is_lower, one, other), builder.select(is_lower, other, one)


def _sorted(builder: ir.IRBuilder, bitonic: Any) -> Any:
    """Sort a vector that ascends and then descends, or the other way round."""
    for partners, kept in _STAGES:
        other = builder.shuffle_vector(bitonic, bitonic, _lanes(partners))
        bitonic = builder.shuffle_vector(*_ordered(builder, bitonic, other), _lanes(kept))
    return bitonic


class _Merge:
    """One merge of the generated code: its variables, and its step."""

    def __init__(self, builder: ir.IRBuilder, runs: Any, out: Any, state: Any) -> None:
        self._builder, self._runs, self._out, self._state = builder, runs, out, state
        self._at = [cgutils.alloca_once(builder, _WORD) for _ in range(STATE_WORDS)]
        for number, at in enumerate(self._at):
            builder.store(builder.load(self._word(number)), at)
        self._kept = cgutils.alloca_once(builder, _WORDS)
        builder.store(self._vector(self._runs, self._at[LEFT]), self._kept)
        self._move(LEFT)
        self._next = cgutils.alloca_once(builder, _WORDS)
        builder.store(self._vector(self._runs, self._at[RIGHT]), self._next)
        self._move(RIGHT)
        self._network()

    def _word(self, number: int) -> Any:
        return self._builder.gep(self._state, [ir.Constant(_WORD, number)])

    def _pointer(self, array: Any, at: Any) -> Any:
        word = self._builder.gep(array, [self._builder.load(at)])
        return self._builder.bitcast(word, _WORDS.as_pointer())

    def _vector(self, array: Any, at: Any) -> Any:
        return self._builder.load(self._pointer(array, at), align=8)

    def _move(self, number: int) -> None:
        moved = self._builder.add(self._builder.load(self._at[number]), ir.Constant(_WORD, LANES))
        self._builder.store(moved, self._at[number])

    def _network(self) -> None:
        """Write the lower eight of what is kept and what comes next, and keep the others."""
        builder = self._builder
        descending = builder.shuffle_vector(
            builder.load(self._next), builder.load(self._next), _lanes(range(LANES - 1, -1, -1))
        )
        lower, higher = _ordered(builder, builder.load(self._kept), descending)
        builder.store(_sorted(builder, lower), self._pointer(self._out, self._at[INDEX]), align=8)
        builder.store(_sorted(builder, higher), self._kept)
        self._move(INDEX)

    def goes_on(self) -> Any:
        """Return whether both runs have a vector left."""
        builder = self._builder
        fits = []
        for number, end in ((LEFT, LEFT_END), (RIGHT, RIGHT_END)):
            after = builder.add(builder.load(self._at[number]), ir.Constant(_WORD, LANES))
            fits.append(builder.icmp_signed("<=", after, builder.load(self._at[end])))
        return builder.and_(*fits)

    def step(self) -> None:
        """Take a vector of the run whose head is lower, and merge it."""
        builder = self._builder
        left, right = builder.load(self._at[LEFT]), builder.load(self._at[RIGHT])
        heads = [builder.load(builder.gep(self._runs, [at])) for at in (left, right)]
        is_left = builder.icmp_unsigned("<=", *heads)
        source = builder.gep(self._runs, [builder.select(is_left, left, right)])
        vector = builder.load(builder.bitcast(source, _WORDS.as_pointer()), align=8)
        builder.store(vector, self._next)
        lanes, none = ir.Constant(_WORD, LANES), ir.Constant(_WORD, 0)
        builder.store(builder.add(left, builder.select(is_left, lanes, none)), self._at[LEFT])
        builder.store(builder.add(right, builder.select(is_left, none, lanes)), self._at[RIGHT])
        self._network()

    def end(self, kept: Any, first: int) -> None:
        """Write the state, and the vector that is kept to eight words of ``kept``."""
        builder = self._builder
        for number, at in enumerate(self._at):
            builder.store(builder.load(at), self._word(number))
        word = builder.gep(kept, [ir.Constant(_WORD, first)])
        builder.store(builder.load(self._kept), builder.bitcast(word, _WORDS.as_pointer()), align=8)


def _loop(builder: ir.IRBuilder, merges: Sequence[_Merge]) -> None:
    """Step all merges in turn while all go on."""
    check, body, after = (builder.append_basic_block(f"merge_{n}") for n in ("if", "do", "end"))
    builder.branch(check)
    builder.position_at_end(check)
    goes_on = merges[0].goes_on()
    for merge in merges[1:]:
        goes_on = builder.and_(goes_on, merge.goes_on())
    builder.cbranch(goes_on, body, after)
    builder.position_at_end(body)
    for merge in merges:
        merge.step()
    builder.branch(check)
    builder.position_at_end(after)


@intrinsic
def merge_vectors(typing_context: Any, runs: Any, out: Any, states: Any, kept: Any) -> Any:
    """Advance two merges by whole vectors until a run of each has fewer than eight tuples left.

    ``states`` holds the state of both, ``STATE_WORDS`` words each; every run has at least eight
    tuples at first. ``kept`` receives the eight tuples of each that are taken, but not written.
    """
    signature = types.void(runs, out, states, kept)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        runs, out, states, kept = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(sig.args, args, strict=True)
        )
        second = builder.gep(states, [ir.Constant(_WORD, STATE_WORDS)])
        merges = [_Merge(builder, runs, out, state) for state in (states, second)]
        _loop(builder, merges)
        for merge in merges:
            _loop(builder, [merge])
        for number, merge in enumerate(merges):
            merge.end(kept, number * LANES)
        return context.get_dummy_value()

    return signature, generate
