"""Index-based window joins over B+-trees and over chained indexes: PIM-Tree, sections 2.2.1, 2.2.2.

``ibwj-bptree`` keeps one B+-tree a window and deletes every tuple as it expires: the baseline of
the study. Deletion merges neighbours or balances them when a node is down to a quarter (a textbook
B+-tree does so at half, and splits again sooner).

``ibwj-chain`` cuts a window into sub-indexes by arrival. With ``chain_length`` L a sub-index holds
1 / (L - 1) of the window, so that L of them cover any window; one whose tuples have all expired is
emptied as a whole and becomes the next active one. In a B-chain (``chain=b``) all are B+-trees, in
an IB-chain (``chain=ib``) full ones become immutable. As in the study, no tuple is joined during
the conversion.

Memory: 12 bytes for each live tuple, and the unused part of nodes (in all at most twice that in a
tree with insertions only, four times with deletions); a B-chain holds L / (L - 1) of a window, an
IB-chain 8 bytes for each of its tuples besides the active sub-index.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from streamjoin.engines.base import Knob
from streamjoin.engines.crew import Crew
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.ibwj import BATCH, IndexJoin, Output, WindowIndex
from streamjoin.metrics import Meter

if TYPE_CHECKING:
    from streamjoin.engines.kernels.trees.probing import Arrivals, Columns

MAX_LINKS = 64


class _Resumed(WindowIndex):
    """Calls a kernel again until it has joined all arrivals."""

    def __init__(self) -> None:
        self._output = Output()

    def join(self, arrivals: "Arrivals", meter: Meter, crew: Crew) -> None:
        """Join arrivals and emit their pairs."""
        arrival = 0
        while arrival < len(arrivals.rows):
            with meter.phase("probe"):
                reached, matches = self.step(arrivals, arrival, self._output)
            self._output.emit(matches, meter)
            if reached == arrival:
                self._output.grow()
            arrival = reached

    def finish(self) -> None:
        """Do nothing: all pairs were emitted."""

    @abstractmethod
    def step(self, arrivals: "Arrivals", arrival: int, output: Output) -> tuple[int, int]:
        """Join from an arrival on; return the arrival to resume with and the number of matches."""


class _Trees(_Resumed):
    def __init__(self, columns: "Columns", live: tuple[int, int]) -> None:
        from streamjoin.engines.kernels.trees import btree, windowtrees

        super().__init__()
        self._kernel, self._columns = windowtrees.join_tree, columns
        leaves = btree.leaves_for(max(live) + 1, int(btree.SPARSE))
        self.forest = btree.plant(2, 2, leaves)
        self._oldest = np.array([0, columns.r.shape[1]], dtype=np.uint64)

    def step(self, arrivals: "Arrivals", arrival: int, output: Output) -> tuple[int, int]:
        """Join from an arrival on."""
        return self._kernel(
            self._columns, arrivals, self.forest, self._oldest, arrival, output.room
        )

    @property
    def bytes(self) -> int:
        """Bytes of the nodes in use."""
        from streamjoin.engines.kernels.trees import btree

        return btree.bytes_in_use(self.forest)


class BPlusTreeJoin(IndexJoin):
    """Index-based window join over B+-trees with deletion: the study's baseline."""

    name: ClassVar[str] = "ibwj-bptree"

    def index(self, columns: "Columns", live: tuple[int, int], job: Job) -> WindowIndex:
        """Make a tree for each window."""
        return _Trees(columns, live)


class _Chain(_Resumed):
    def __init__(
        self, columns: "Columns", live: tuple[int, int], length: int, frozen: bool
    ) -> None:
        from streamjoin.engines.kernels.trees import btree, immutable, nodes, windowtrees

        super().__init__()
        self._kernel, self._columns = windowtrees.join_chain, columns
        self._length, self._frozen = length, frozen
        self._blocks = np.array([-(-tuples // (length - 1)) for tuples in live], dtype=np.uint64)
        max_entries = int(self._blocks.max())
        trees = 2 if frozen else 2 * length
        self.forest = btree.plant(trees, trees, btree.leaves_for(max_entries, nodes.NODE // 2))
        self.archive = immutable.reserve(2 * length if frozen else 1, max_entries if frozen else 1)

    def step(self, arrivals: "Arrivals", arrival: int, output: Output) -> tuple[int, int]:
        """Join from an arrival on."""
        return self._kernel(
            self._columns,
            arrivals,
            self.forest,
            self.archive,
            self._frozen,
            self._length,
            self._blocks,
            arrival,
            output.room,
        )

    @property
    def bytes(self) -> int:
        """Bytes of the nodes in use, and of the immutable sub-indexes."""
        from streamjoin.engines.kernels.trees import btree, immutable

        return btree.bytes_in_use(self.forest) + immutable.bytes_in_use(self.archive)


class ChainJoin(IndexJoin):
    """Index-based window join over a chained index: sub-indexes that expire as a whole."""

    name: ClassVar[str] = "ibwj-chain"
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("chain", "ib", "ib freezes full sub-indexes, b does not.", choices=("ib", "b")),
        Knob("chain_length", 2, "Sub-indexes that cover a window.", 2, MAX_LINKS),
        BATCH,
    )

    def index(self, columns: "Columns", live: tuple[int, int], job: Job) -> WindowIndex:
        """Make a chain for each window."""
        return _Chain(columns, live, int(job.knobs["chain_length"]), job.knobs["chain"] == "ib")
