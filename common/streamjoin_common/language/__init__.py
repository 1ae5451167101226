"""The query language: predicates, windows, durations, arrival columns, order, kinds.

Each is parsed here alone, so what one command or function accepts, all accept. The rules are the
same throughout:

- Digits are the ASCII digits. Nothing is stripped: there are no spaces around or inside a string.
- A number is written in one way: no sign but ``-``, no leading zeros (``7``, not ``007`` or
  ``+7``), no separators (``1_0``), digits on both sides of a decimal point (``0.5``, not ``.5``).
- A count or a duration is at least one tuple or microsecond and below 2**62, and a duration is an
  integer number of microseconds (``1.5s``, not ``0.5us``).
- A width of a band is an integer of at most 400 digits, which is exact; or a floating-point number
  (``0.5``, ``1e3``), which must be finite in float64; or ``inf`` or ``-inf``. It may be negative.
  NaN is refused.
- A column's name is any string without the characters that separate it: ``,`` and ``=`` in equal
  columns, ``=`` and ``:`` in bands.

For every object ``x`` of this package, parsing ``x.text`` gives an object that equals ``x``.
"""
