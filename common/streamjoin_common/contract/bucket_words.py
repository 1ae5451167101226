"""Words of the buckets of an ordered index: one each, or several where keys move.

Words are counted on without end and lie in an index in turn, so that buckets of an input may have
more words together than the index. A window that holds a part of the keys then fills all of it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import log2
from typing import NamedTuple

from streamjoin_common.contract.params import DesignParams
from streamjoin_common.contract.splitters import splitters_of, used_buckets

COUNT_BITS = 24
"""Bits of a word's number as words are counted on."""
ONE_WORD = 32
"""Shift of a bucket of one word."""
_COUNTS = 1 << COUNT_BITS
_WINDOWS = 6
"""Windows of an input in which tuples are counted."""


class Bucket(NamedTuple):
    """What a bucket of an ordered index is set to.

    Attributes
    ----------
    splitter : int
        The highest ordered code below the bucket; 0 for the first one, below which is none.
    first, shift : int
        Code ``c`` of the bucket belongs to word ``first + (c >> shift)``, modulo
        ``2 ** COUNT_BITS``; a lower code never to a later word.
    """

    splitter: int
    first: int
    shift: int

    def word(self, code: int) -> int:
        """Return the number of a code's word.

        >>> Bucket(99, 7, 4).word(100), Bucket(99, 7, ONE_WORD).word(100)
        (13, 7)
        """
        return ((code >> self.shift) + self.first) % (1 << COUNT_BITS)


def bucket_writes(side: int, buckets: Sequence[Bucket]) -> Iterator[tuple[str, int]]:
    """Yield the registers to write, with their values, to set the buckets of a side's index.

    >>> list(bucket_writes(1, [Bucket(0, 0, 32), Bucket(9, 1, 2)]))[3:]
    [('bucket_words', 2181038081), ('splitter', 9)]
    """
    yield "splitter_index", side << 16
    written = None
    for number, bucket in enumerate(buckets):
        words = 1 << 31 | bucket.shift << COUNT_BITS | bucket.first
        if (bucket.first, bucket.shift) == (number, ONE_WORD):
            words = 0
        if words != written:
            yield "bucket_words", words
            written = words
        yield "splitter", bucket.splitter


def buckets_of(
    params: DesignParams, codes: Sequence[int], window: int, tuples: int | None = None
) -> list[Bucket]:
    """Return the buckets for an input: those in which the tuples of its windows find room at once.

    One word for each bucket is best where the keys stay. Where they move, a window holds a part of
    them: then the buckets have twice as many words together, or more, as long as that helps.

    Parameters
    ----------
    params : DesignParams
        The design.
    codes : sequence of int
        Ordered codes (:func:`order_codes`) of the stream or of an even sample of it, in the order
        of arrival.
    window : int
        Count window in tuples.
    tuples : int, optional
        Tuples of the stream of which ``codes`` is a sample.

    Examples
    --------
    >>> design = DesignParams(design="splitjoin-index", cores=1, segment_tuples=8, lanes=4,
    ...                       buckets=8, ways=2)
    >>> [bucket.splitter for bucket in buckets_of(design, [7, 1, 5, 3], 4)][:4]
    [0, 1, 3, 5]
    >>> [bucket.word(900) for bucket in buckets_of(design, range(1000), 8)[-2:]]
    [453, 503]
    """
    weight = max(1.0, (tuples or 0) / max(1, len(codes)))
    used = used_buckets(params, window)
    chosen = _one_word_each(codes, params.buckets, used)
    cost, words = _cost(params, chosen, codes, window, weight), used
    most = min(4 * used * len(codes) * weight / window, 1 << COUNT_BITS - 2)
    while cost > _FINE and words < most:
        words *= 2
        others = _rows(codes, params.buckets, words)
        their_cost = _cost(params, others, codes, window, weight)
        if their_cost - 1 < _BETTER * (cost - 1):
            chosen, cost = others, their_cost
    return chosen


_FINE, _BETTER = 1.02, 0.8
"""Words for a word's tuples that are few enough, and a share of the surplus worth more words."""


def _one_word_each(codes: Sequence[int], buckets: int, used: int) -> list[Bucket]:
    splitters = [0, *splitters_of(codes, buckets, used)]
    return [Bucket(splitter, number, ONE_WORD) for number, splitter in enumerate(splitters)]


def _rows(codes: Sequence[int], buckets: int, words: int) -> list[Bucket]:
    """Return buckets of equal depth that have about so many words together."""
    if words <= buckets:
        return _one_word_each(codes, buckets, words)
    # The first bucket is for what is below all of the sample, the last for what is above.
    ordered = sorted(codes)
    inner = buckets - 2
    share = words / inner
    bounds = [max(0, ordered[0] - 1)]
    bounds += [ordered[max(0, i * len(ordered) // inner - 1)] for i in range(1, inner + 1)]
    rows, following = [Bucket(0, 0, ONE_WORD)], 1
    for number, (below, last) in enumerate(pairwise(bounds), 1):
        if last == below:
            # A frequent code, which leaves its share of words to the tuples displaced from it.
            rows.append(Bucket(below, following % _COUNTS, ONE_WORD))
            following = max(following, 1 + round(number * share))
            continue
        shift = min(ONE_WORD, max(0, round(log2((last - below) / share))))
        begin = (below + 1) >> shift
        rows.append(Bucket(below, (following - begin) % _COUNTS, shift))
        following += (last >> shift) - begin + 1
    rows.append(Bucket(bounds[-1], following % _COUNTS, ONE_WORD))
    return rows


def _cost(
    params: DesignParams,
    buckets: Sequence[Bucket],
    codes: Sequence[int],
    window: int,
    weight: float,
) -> float:
    """Return how many words hold what is of a tuple's word, on average, in full windows.

    A sampled tuple counts for ``weight``. So few of them say nothing of single words: 16 of them,
    at least, share a group of words.
    """
    held = min(len(codes), max(1, round(window / weight)))
    if not codes:
        return 1.0
    grouped = 0 if weight == 1 else min(round(log2(8 * weight)), params.buckets.bit_length() - 2)
    room = params.bucket_slots << grouped
    splitters = [bucket.splitter for bucket in buckets[1:]]
    spent = 0.0
    for number in range(_WINDOWS):
        begin = (len(codes) - held) * number // (_WINDOWS - 1)
        counts = [0.0] * (params.buckets >> grouped)
        for code in codes[begin : begin + held]:
            word = buckets[bisect_left(splitters, code)].word(code)
            counts[word % params.buckets >> grouped] += weight
        spent += _displaced(counts, room) / (held * weight)
    return 1 + spent / _WINDOWS


def _displaced(counts: Sequence[float], room: int) -> float:
    """Return the sum over all tuples of how many words further one may have to look, about."""
    carried = total = 0.0
    for is_second in (False, True):
        for count in counts:
            carried = max(0.0, carried + count - room)
            total += count * carried / room * is_second
    return total
