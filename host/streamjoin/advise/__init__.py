"""Which engine suits a workload: features of a sample, walked down the study's decision tree.

The IaWJ study, section 5.1 and figure 4. The thresholds are this project's own measurements
(:mod:`streamjoin.bench.calibrate`), kept with their evidence.

``streamjoin.advise(...)`` asks for it: :func:`streamjoin.verbs.advice.advise`.
"""

from streamjoin.advise.features import Features, measure
from streamjoin.advise.thresholds import Thresholds
from streamjoin.advise.tree import GOALS, Advice, Goal, advise, choose
from streamjoin_common.callable_module import make_callable

make_callable(__name__, "streamjoin.verbs.advice", "advise")

__all__ = ["GOALS", "Advice", "Features", "Goal", "Thresholds", "advise", "choose", "measure"]
