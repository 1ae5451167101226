"""Which engine suits a workload: features of a sample, walked down the study's decision tree.

The IaWJ study, section 5.1 and figure 4. The thresholds are this project's own measurements
(:mod:`streamjoin.bench.calibrate`), kept with their evidence.
"""

from streamjoin.advise.features import Features, measure
from streamjoin.advise.thresholds import Thresholds
from streamjoin.advise.tree import GOALS, Advice, advise, choose

__all__ = ["GOALS", "Advice", "Features", "Thresholds", "advise", "choose", "measure"]
