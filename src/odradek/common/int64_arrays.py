"""Arrays of 64-bit numbers as compiled code reads and writes them: without an object for each number.

Where code is interpreted, the array itself serves. int64_arrays.pxd has the C side; both are used alike:

    numbers = numbers_of(column)
    numbers[3] = numbers[2] + 1

In C nothing is checked behind the pointer: bounds are the caller's part, and that the array is not resized.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right


def numbers_of(column: array[int]) -> array[int]:
    """To read and write."""
    return column


def append_number(column: array[int], number: int) -> None:
    """Add one at the end."""
    column.append(number)


def count_up_to(column: array[int], limit: int) -> int:
    """How many of the numbers, which rise, are not above the limit; of 32 or 64 bits."""
    return bisect_right(column, limit)
