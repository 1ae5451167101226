"""The Python interface: ``join`` two inputs, then read pairs, rows and metrics."""

from collections.abc import Mapping
from datetime import timedelta

from streamjoin import verify
from streamjoin.engines import catalog
from streamjoin.engines.job import Arrival, Backend
from streamjoin.errors import InputError
from streamjoin.results.rows import JoinResult
from streamjoin.run import Moment
from streamjoin.sequence import Request
from streamjoin_common.arguments import with_hints
from streamjoin_common.language.arrivals import Arrivals, Unit
from streamjoin_common.language.durations import parse_lateness
from streamjoin_common.language.kinds import How
from streamjoin_common.language.order import Order
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow, Window, parse_window


def as_window(window: Window | str | None) -> Window:
    """Parse a window; None is the complete window."""
    if window is None:
        return AllWindow()
    if isinstance(window, str):
        return parse_window(window)
    if isinstance(window, timedelta):
        raise InputError(
            f"window must say which kind it is, as sj.TimeWindow({window!r}), not {window!r}"
        )
    if not isinstance(window, Window):
        raise InputError(
            f"window must be a window such as sj.CountWindow(2) or a string, not {window!r}"
        )
    return window


@with_hints
def join(
    r: object,
    s: object,
    *,
    on: str | list[str] | None = None,
    band: str | list[str] | None = None,
    window: Window | str | None = None,
    engine: str = "auto",
    threads: int = 1,
    order: Order = "none",
    arrival: Arrival = "instant",
    speedup: float = 1.0,
    ts: str | None = None,
    ts_unit: Unit | None = None,
    lateness: str | timedelta | None = None,
    backend: Backend | None = None,
    knobs: Mapping[str, int | str] | None = None,
    check: bool = False,
    max_pairs: int | None = None,
    how: How = "inner",
) -> JoinResult:
    """Join two streams.

    Parameters
    ----------
    r, s : Arrow data, data frame, mapping of str to array-like, or path
        The inputs, in arrival order; a file by its path, several by a pattern as ``"a/*.parquet"``.
        R may stay in a store: give its string, as ``"sqlite:planes.db:planes"``
        (:mod:`streamjoin.relations`), or an open store.
    on : str or list of str, optional
        Equal columns: ``"k"``, ``"rk=sk"``, several separated by commas.
    band : str or list of str, optional
        Band terms: ``"x=a:10:10"`` means ``a - 10 <= x <= a + 10``; of times
        ``"t=u within 5s"``.
    window : Window or str, optional
        ``"all"`` (the default), ``"tumbling:1s"``, ``"count:W_R[,W_S]"``, ``"time:T_R[,T_S]"``.
    engine : str
        A name of ``streamjoin engines``, or ``"auto"``.
    threads : int
        Threads that a parallel engine may use.
    order : str
        Order asked for: ``"none"``, ``"outer"``, ``"inner"``.
    arrival : str
        ``"instant"`` or ``"replay"`` (honours arrival times).
    speedup : float
        A replay runs this much faster.
    ts : str, optional
        The arrival column, ``ts`` by default; ``"sent=received"`` where R's is ``sent`` and S's
        ``received``, ``""`` for none. Windows ``tumbling`` and ``time`` need one on both sides.
    ts_unit : str, optional
        Unit of arrival times that are integers: ``"s"``, ``"ms"``, ``"us"`` (the default) or
        ``"ns"``.
    lateness : str or timedelta, optional
        Maximum lateness of tuples that are put in order (``"10ms"``); later ones are dropped and
        counted in ``metrics["late"]``. Arrival times that decrease are refused by default.
    backend : str, optional
        Where a hardware engine runs: ``"model"`` or ``"pynq"``.
    knobs : dict, optional
        The engine's tuning parameters.
    check : bool
        Compare the result with the oracle's.
    max_pairs : int, optional
        Maximum pairs, beyond which the run ends; if given, no estimate refuses the run. By default
        a run is refused if samples show with 99.9 % confidence that its result outgrows the memory.
    how : str
        ``"inner"``, ``"left"``, ``"right"``, ``"full"``, ``"semi"`` or ``"anti"``. A missing side
        has row number -1.

    Returns
    -------
    JoinResult
        Pairs, rows and metrics.

    Raises
    ------
    InputError, UnsupportedError, UnavailableError
        If input, engine and machine do not fit together.
    MismatchError
        If ``check`` finds a difference.
    TooLargeError
        If the result has more than ``max_pairs`` pairs, or more than fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> import streamjoin as sj
    >>> r = {"k": np.array([1, 2, 3])}
    >>> s = {"k": np.array([3, 1, 3])}
    >>> result = sj.join(r, s, on="k", engine="npj")
    >>> sorted(zip(result.r_rows.tolist(), result.s_rows.tolist()))
    [(0, 1), (2, 0), (2, 2)]
    """
    began = Moment.now()
    predicate = Predicate.parse(on, band)
    window = as_window(window)
    request = Request(
        predicate=predicate,
        window=window,
        arrivals=Arrivals.parse(ts, ts_unit, window),
        lateness_us=parse_lateness(lateness),
        threads=threads,
        arrival=arrival,
        speedup=speedup,
        order=order,
        backend=backend,
        max_pairs=max_pairs,
        how=how,
    )
    if engine != "auto":
        catalog.get(engine)  # a wrong name is reported before the inputs are taken
    resolved = request.resolve(engine, request.take(r, s), knobs, will_verify=check)
    outcome = resolved.run(began=began)
    if check:
        resolved.verify(outcome, verify.expected(resolved.job))
    return JoinResult(outcome)
