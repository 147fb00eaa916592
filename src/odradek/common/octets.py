"""The bytes of a memoryview as compiled code reads them: by pointer, without a call for each.

Where code is interpreted, the view itself serves. octets.pxd has the C side; both are used alike:

    octets = octets_of(view)
    first = octets[0]

In C nothing is checked behind the pointer, neither the bounds nor that the view lives on.
"""

from __future__ import annotations


def octets_of(view: memoryview) -> memoryview:
    """To read."""
    return view


def writable_octets_of(view: memoryview) -> memoryview:
    """To read and write."""
    return view
