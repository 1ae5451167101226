"""The metrics of a run: a dictionary some of whose values are computed when looked at."""

from collections.abc import Callable, Iterator
from typing import Any


class Later:
    """A value that is computed when it is looked at.

    Parameters
    ----------
    compute : callable
        Returns the value.
    """

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = compute


class Metrics(dict[str, Any]):
    """The metrics of a run, as the file that ``--metrics`` writes.

    Digest, latencies and progress cost time for each pair: they are computed when they are looked
    at, once. Whatever reads all of it, such as ``json.dumps`` or ``{**metrics}``, has them all.

    Examples
    --------
    >>> metrics = Metrics({"pairs": 3, "digest": Later(lambda: "a" * 16)})
    >>> metrics["digest"], metrics == {"pairs": 3, "digest": "a" * 16}
    ('aaaaaaaaaaaaaaaa', True)
    """

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if isinstance(value, Later):
            value = self[name] = value.compute()
        return value

    def __iter__(self) -> Iterator[str]:  # with its own, dict(metrics) calls __getitem__
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or a default where there is none."""
        return self[name] if name in self else default  # noqa: SIM401  (this is get)

    def pop(self, name: str, *default: Any) -> Any:
        """Remove a value and return it."""
        if name in self:
            self[name]
        return super().pop(name, *default)

    def _computed(self) -> "Metrics":
        for name in self:
            self[name]
        return self

    def items(self) -> Any:
        """Return names and values."""
        return super(Metrics, self._computed()).items()

    def values(self) -> Any:
        """Return the values."""
        return super(Metrics, self._computed()).values()

    def copy(self) -> dict[str, Any]:
        """Return a plain dictionary of everything."""
        return dict(self.items())

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __eq__(self, other: object) -> bool:
        return super(Metrics, self._computed()).__eq__(other)

    __hash__ = None

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return repr(self.copy())

    def __reduce__(self) -> tuple[type["Metrics"], tuple[dict[str, Any]]]:
        return Metrics, (self.copy(),)
