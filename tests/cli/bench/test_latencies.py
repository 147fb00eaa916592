from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.bench.figures import BAR_WIDTH, bars
from odradek.cli.bench.latencies import Latencies

TIMES_NS = st.lists(st.integers(0, 10**13), min_size=1)


def latencies_of(times_ns: list[int]) -> Latencies:
    latencies = Latencies()
    for elapsed_ns in times_ns:
        latencies.add(elapsed_ns)
    return latencies


@given(times_ns=TIMES_NS, percent=st.sampled_from([50, 95, 99, 99.9, 100]))
def test_a_percentile_is_near_the_exact_one(times_ns, percent):
    exact_ns = sorted(times_ns)[ceil(len(times_ns) * percent / 100) - 1]
    reported_ns = latencies_of(times_ns).percentile_ms(percent) * 1e6
    assert exact_ns * (1 - 1e-9) <= reported_ns <= exact_ns * (1 + 1 / 64) + 1000


@given(times_ns=TIMES_NS)
def test_the_histogram_counts_each_time_once_between_its_edges(times_ns):
    latencies = latencies_of(times_ns)
    rows = latencies.histogram()
    assert sum(count for *_, count in rows) == len(times_ns) == latencies.count
    assert rows[0][0] <= min(times_ns) / 1e6 * (1 + 1 / 64)
    assert max(times_ns) / 1e6 <= rows[-1][1] * (1 + 1 / 64)
    assert [end for _, end, _ in rows[:-1]] == [begin for begin, *_ in rows[1:]]


@given(times_ns=TIMES_NS)
def test_the_longest_bar_is_full_and_nothing_is_hidden(times_ns):
    lengths = [line.count("#") for line in bars(latencies_of(times_ns))]
    counts = [count for *_, count in latencies_of(times_ns).histogram()]
    assert max(lengths) == BAR_WIDTH
    assert [length > 0 for length in lengths] == [count > 0 for count in counts]


def test_the_average_and_the_longest_are_exact():
    latencies = latencies_of([1_000_000, 3_000_000])
    assert (latencies.average_ms, latencies.max_ms) == (2.0, 3.0)


def test_nothing_counted_is_no_error():
    nothing = Latencies()
    assert (nothing.percentile_ms(99), nothing.average_ms, nothing.histogram(), bars(nothing)) == (
        0,
        0,
        [],
        [],
    )
