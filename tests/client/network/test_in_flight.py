from __future__ import annotations

import asyncio
import struct

import pytest

from odradek.client.network.in_flight import MAX_CORRELATION_ID, InFlight, InFlightRequest
from odradek.client.network.responses import BadResponse
from odradek.protocol.api_key import ApiKey

LOOP = asyncio.new_event_loop()
LOOP.close()


def waiting(correlation_id: int, deadline_ms: float = 1000) -> InFlightRequest:
    return InFlightRequest(correlation_id, ApiKey.METADATA, 1000, deadline_ms, asyncio.Future(loop=LOOP))


def an_answer(correlation_id: int) -> memoryview:
    return memoryview(struct.pack(">i", correlation_id))


def test_answers_belong_to_requests_in_their_order():
    in_flight = InFlight()
    first, second = waiting(1), waiting(2)
    in_flight.add(first)
    in_flight.add(second)
    assert in_flight.match(an_answer(1)) is first
    assert in_flight.match(an_answer(2)) is second


def test_an_answer_out_of_order_or_to_nothing_is_no_answer():
    in_flight = InFlight()
    with pytest.raises(BadResponse, match="without a request in flight"):
        in_flight.match(an_answer(1))
    in_flight.add(waiting(1))
    with pytest.raises(BadResponse, match="2 where 1 is expected"):
        in_flight.match(an_answer(2))


def test_a_request_behind_a_patient_one_has_its_own_deadline():
    in_flight = InFlight()
    in_flight.add(waiting(1, deadline_ms=5000))
    in_flight.add(waiting(2, deadline_ms=1000))
    assert in_flight.next_deadline_ms() == 1000
    assert in_flight.overdue(999) is None
    overdue = in_flight.overdue(1000)
    assert overdue is not None
    assert overdue.correlation_id == 2


def test_ids_begin_again_after_the_largest():
    in_flight = InFlight(MAX_CORRELATION_ID)
    assert in_flight.next_id() == 1
