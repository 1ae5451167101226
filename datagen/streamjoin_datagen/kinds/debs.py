"""The IaWJ study's DEBS: posts and comments at rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.kinds.study import MAX_KEYS, StudySpec
from streamjoin_datagen.spec import MAX_ROWS, zipf_meeting

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column


@dataclass(frozen=True, kw_only=True)
class DebsSpec(StudySpec):
    """DEBS: posts R(k, v) and comments S(k, v) of the same users, both at rest.

    From the study: everything at rest, high duplication in both streams, less skew than
    Stock. Read off its published settings: a million posts and as many comments with 251,033,140
    pairs. Assumed: a Zipf exponent of 0.3, and then 4767 users give that many pairs.

    Parameters
    ----------
    posts, comments : int
        Rows of R and of S.
    users : int
        Keys lie in 1 to this.
    skew : float
        Zipf exponent of the keys of both streams.
    """

    posts: int = 1_000_000
    comments: int = 1_000_000
    users: int = 4767
    skew: float = 0.3

    kind: ClassVar[str] = "debs"
    summary: ClassVar[str] = "like its DEBS: at rest, high duplication in both streams"
    labels: ClassVar[Mapping[str, str]] = {
        "posts": "r",
        "comments": "s",
        "users": "k",
        "skew": "z",
    }

    def __post_init__(self) -> None:
        self._check_seed_and_window("all")
        self._check_count("posts", 0, MAX_ROWS)
        self._check_count("comments", 0, MAX_ROWS)
        self._check_count("users", 1, MAX_KEYS)
        self._check_number("skew", 0, 2, above=False)

    @property
    def window_text(self) -> str:
        """Everything is at rest."""
        return "all"

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return self.posts if stream == "r" else self.comments

    @property
    def key_domain(self) -> int:
        """Keys lie in 1 to this."""
        return self.users

    def timing(self, stream: str) -> "Timing":
        """At rest."""
        from streamjoin_datagen.rows.arrivals import Regular

        return Regular(0.0)

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Zipf keys, busy users being the same in both streams."""
        from streamjoin_datagen.rows import fillers, keys

        law = (self.users, self.skew)
        rows = (first_row, row_count)
        return {
            "k": keys.zipf(self.seed, stream, rows, *law, labels=(self.seed, "both")),
            "v": fillers.payloads(self.seed, stream, first_row, row_count),
        }

    def estimated_pairs(self) -> float | None:
        """Pairs of all posts and comments."""
        return float(self.posts) * self.comments * zipf_meeting(self.users, self.skew)
