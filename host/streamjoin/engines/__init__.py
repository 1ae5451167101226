"""Join engines behind one protocol; see base and catalog.

``streamjoin.engines()`` lists them: :func:`streamjoin.engines.listing.engines`.
"""

from streamjoin_common.callable_module import make_callable

make_callable(__name__, "streamjoin.engines.listing", "engines")
