"""The sender between a real accumulator and a broker whose answers the test decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from client.scripted_broker import ScriptedBroker, api_versions, run
from odradek.client.errors import BrokerError
from odradek.client.network.brokers import Brokers
from odradek.client.producer.batches.accumulator import OnDelivery
from odradek.client.producer.batches.batch import DeliveryFuture
from odradek.client.producer.config import producer_config
from odradek.client.producer.engine import make_accumulator
from odradek.client.producer.errors import DeliveryTimedOut
from odradek.client.producer.sending.sender import Sender
from odradek.client.producer.statistics import ProducerStatistics
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    InitProducerIdResponse,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from odradek.protocol.structs import Message
from odradek.records.batch import read_header
from odradek.records.record import read_records

TOPIC_ID = b"t" * 16
SERVED = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID)
Row = ProduceResponse.Responses.PartitionResponses
Answers = Callable[[Row, bytes], Awaitable[None] | None]
Values = list[bytes | None]


def values_in(records: bytes) -> Values:
    return [record.value for record in read_records(records, max_bytes=10**6)]


class Given:
    """A sender, its accumulator, and a broker that leads all partitions of topic "t"."""

    def __init__(self, broker: ScriptedBroker, partitions: int, settings: dict[str, Any]) -> None:
        quick = {
            "retry_backoff_ms": 1,
            "reconnect_backoff_ms": 1,
            "linger_ms": 0,
            "enable_idempotence": False,
        }
        keywords = quick | settings
        self.broker = broker
        self.leader_id = 0
        self.on_batch: Answers = lambda row, records: None
        self.requests: list[dict[int, Values]] = []
        self.batches: list[bytes] = []
        self._partitions = partitions
        self.config = producer_config({"bootstrap_servers": broker.address} | keywords)
        self.accumulator = make_accumulator(self.config)
        self.brokers = Brokers(self.config, "producer")
        self.statistics = ProducerStatistics()
        self.sender = Sender(self.config, self.accumulator, self.brokers, self.statistics)
        self.accumulator.wake = lambda: asyncio.get_running_loop().call_soon(self.sender.pump)
        broker.say |= {
            ApiKey.API_VERSIONS: lambda _: api_versions(*SERVED),
            ApiKey.METADATA: self._metadata,
            ApiKey.INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(producer_id=7, producer_epoch=0),
            ApiKey.PRODUCE: self._produce,
        }

    async def learn_topic(self) -> None:
        self.brokers.metadata.want(["t"])
        await self.brokers.ensure_fresh()
        self.sender.apply_metadata()
        self.sender.pump()  # from now on the accumulator wakes it

    def send(
        self, *values: bytes, partition: int = 0, on_delivery: OnDelivery | None = None
    ) -> list[DeliveryFuture]:
        """Records that go together in one batch, once the sender runs."""
        futures = [
            self.accumulator.send("t", value, None, partition, None, None, on_delivery) for value in values
        ]
        assert None not in futures
        return [future for future in futures if future is not None]

    def _metadata(self, request: Message) -> MetadataResponse:
        answer = self.broker.metadata(request)
        rows = [
            MetadataResponse.Topics.Partitions(
                partition_index=index, leader_id=self.leader_id, leader_epoch=0
            )
            for index in range(self._partitions)
        ]
        answer.topics = [MetadataResponse.Topics(name="t", topic_id=TOPIC_ID, partitions=rows)]
        return answer

    async def _produce(self, request: Message) -> ProduceResponse | None:
        assert isinstance(request, ProduceRequest)
        parts = [part for topic in request.topic_data for part in topic.partition_data]
        payloads = {part.index: bytes(part.records or b"") for part in parts}
        self.batches += payloads.values()
        self.requests.append({index: values_in(records) for index, records in payloads.items()})
        rows = [Row(index=index, base_offset=10) for index in payloads]
        for row in rows:
            pending = self.on_batch(row, payloads[row.index])
            if pending is not None:
                await pending
        if request.acks == 0:
            return ProduceResponse()
        reported = [row for row in rows if row.index >= 0]
        topic = request.topic_data[0]
        response = ProduceResponse.Responses(
            name=topic.name, topic_id=topic.topic_id, partition_responses=reported
        )
        return ProduceResponse(responses=[response])


@asynccontextmanager
async def a_sender(partitions: int = 1, **settings: Any) -> AsyncIterator[Given]:
    async with ScriptedBroker() as broker:
        given = Given(broker, partitions, settings)
        await given.learn_topic()
        try:
            yield given
        finally:
            given.sender.stop()
            await given.brokers.close()


class Refusing:
    """Refuses the first `times` batches with an error."""

    def __init__(self, error_code: ErrorCode, times: int = 1) -> None:
        self.error_code = error_code
        self.times = times

    def __call__(self, row: Row, records: bytes) -> None:
        if self.times > 0:
            self.times -= 1
            row.error_code = self.error_code


def test_one_request_carries_a_batch_of_each_partition() -> None:
    async def scenario() -> None:
        async with a_sender(partitions=3) as given:
            first = given.send(b"a", b"b", partition=0) + given.send(b"c", partition=2)
            for future in first:
                await future
            given.requests.clear()
            second = given.send(b"d", partition=0) + given.send(b"e", partition=1)
            assert [(await future).offset for future in second] == [10, 10]
        assert given.requests == [{0: [b"d"], 1: [b"e"]}]
        assert given.statistics.records_delivered == 5
        assert [await future for future in first][1].offset == 11

    run(scenario())


def test_what_is_too_much_for_one_request_goes_in_several() -> None:
    async def scenario() -> None:
        async with a_sender(partitions=3, max_request_size=1000) as given:
            futures = [one for index in range(3) for one in given.send(bytes(700), partition=index)]
            for future in futures:
                await future
        assert [list(request) for request in given.requests] == [[0, 1], [2]]

    run(scenario())


@pytest.mark.parametrize(
    "error_code",
    [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT],
)
def test_a_retriable_error_is_tried_again_and_the_order_kept(error_code: ErrorCode) -> None:
    async def scenario() -> None:
        async with a_sender(max_in_flight_requests_per_connection=1) as given:
            given.on_batch = Refusing(error_code, times=2)
            first = given.send(b"a")
            given.sender.pump()
            second = given.send(b"b")
            for future in first + second:
                await future
        assert [request[0] for request in given.requests] == [[b"a"], [b"a"], [b"a"], [b"b"]]
        assert given.statistics.retries == 2

    run(scenario())


def test_a_final_error_fails_the_batch_at_once_with_its_message() -> None:
    async def scenario() -> None:
        def on_batch(row: Row, records: bytes) -> None:
            row.error_code = ErrorCode.INVALID_RECORD
            row.record_errors = [Row.RecordErrors(batch_index=1, batch_index_error_message="no key")]

        async with a_sender() as given:
            given.on_batch = on_batch
            called: list[str] = []
            futures = given.send(b"a", b"b", b"c", on_delivery=lambda error, _: called.append(str(error)))
            messages = []
            for future in futures:
                with pytest.raises(BrokerError) as caught:
                    await future
                assert caught.value.error_code is ErrorCode.INVALID_RECORD
                messages.append(str(caught.value))
        of_others = "the batch has invalid records (record 1: no key)"
        assert messages == called == [of_others, "no key", of_others]
        assert len(given.requests) == 1
        assert given.statistics.records_failed == 3

    run(scenario())


def test_no_more_attempts_are_made_than_configured() -> None:
    async def scenario() -> None:
        async with a_sender(retries=2) as given:
            given.on_batch = Refusing(ErrorCode.NOT_ENOUGH_REPLICAS, times=100)
            (future,) = given.send(b"a")
            with pytest.raises(BrokerError):
                await future
        assert len(given.requests) == 3

    run(scenario())


def test_a_partition_that_the_answer_leaves_out_is_sent_again() -> None:
    async def scenario() -> None:
        def on_batch(row: Row, records: bytes) -> None:
            if row.index == 1 and len(given.requests) == 1:
                row.index = -1

        async with a_sender(partitions=2) as given:
            given.on_batch = on_batch
            for future in given.send(b"a", partition=0) + given.send(b"b", partition=1):
                assert (await future).offset == 10
        assert given.requests == [{0: [b"a"], 1: [b"b"]}, {1: [b"b"]}]

    run(scenario())


def test_a_batch_that_the_broker_finds_too_large_is_halved() -> None:
    async def scenario() -> None:
        def on_batch(row: Row, records: bytes) -> None:
            if len(values_in(records)) > 1:
                row.error_code = ErrorCode.MESSAGE_TOO_LARGE

        async with a_sender() as given:
            given.on_batch = on_batch
            for future in given.send(b"a", b"b", b"c"):
                await future
        delivered = [request[0] for request in given.requests if len(request[0]) == 1]
        assert delivered == [[b"a"], [b"b"], [b"c"]]
        assert given.statistics.batches_split == 2

    run(scenario())


def test_a_single_record_that_is_too_large_fails() -> None:
    async def scenario() -> None:
        async with a_sender() as given:
            given.on_batch = Refusing(ErrorCode.MESSAGE_TOO_LARGE, times=100)
            (future,) = given.send(b"a")
            with pytest.raises(BrokerError) as caught:
                await future
        assert caught.value.error_code is ErrorCode.MESSAGE_TOO_LARGE
        assert len(given.requests) == 1

    run(scenario())


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_requests_are_on_their_way_than_configured(most: int) -> None:
    async def scenario() -> None:
        async with a_sender(partitions=6, max_in_flight_requests_per_connection=most) as given:
            for future in given.send(b"connect"):
                await future
            answer = asyncio.Event()

            async def hold() -> None:
                await answer.wait()

            given.on_batch = lambda row, records: hold()
            futures = []
            for number in range(6):
                futures += given.send(b"%d" % number, partition=number)
                given.sender.pump()
            connection = given.brokers.open_connection(0)
            assert connection is not None
            for _ in range(20):
                await asyncio.sleep(0.001)
                assert connection.in_flight <= most
            assert connection.in_flight == most
            answer.set()
            for future in futures:
                await future
        sent = [row for request in given.requests[1:] for row in request.items()]
        assert sorted(sent) == [(number, [b"%d" % number]) for number in range(6)]

    run(scenario())


def test_without_acknowledgement_a_record_is_delivered_when_it_is_sent() -> None:
    async def scenario() -> None:
        async with a_sender(acks="0") as given:
            (future,) = given.send(b"a")
            assert (await future).offset == -1
            while not given.requests:
                await asyncio.sleep(0.001)
        assert given.requests == [{0: [b"a"]}]

    run(scenario())


def test_a_batch_without_a_leader_fails_at_its_deadline_with_the_reason() -> None:
    async def scenario() -> None:
        async with a_sender(delivery_timeout_ms=200, request_timeout_ms=100) as given:
            given.leader_id = -1
            given.brokers.metadata.mark_stale()
            await given.brokers.ensure_fresh()
            (future,) = given.send(b"a")
            with pytest.raises(DeliveryTimedOut, match="the partition has no leader"):
                await future
            assert given.accumulator.oldest() is None
        assert given.requests == []

    run(scenario())


def test_an_idempotent_sender_numbers_its_batches_and_repeats_the_number_with_the_batch() -> None:
    async def scenario() -> None:
        async with a_sender(enable_idempotence=True) as given:
            given.on_batch = Refusing(ErrorCode.NOT_ENOUGH_REPLICAS)
            for future in given.send(b"a", b"b"):
                await future
            for future in given.send(b"c"):
                await future
        headers = [read_header(batch) for batch in given.batches]
        assert [(one.producer_id, one.producer_epoch, one.base_sequence) for one in headers] == [
            (7, 0, 0),
            (7, 0, 0),
            (7, 0, 2),
        ]

    run(scenario())


def test_a_duplicate_was_delivered() -> None:
    async def scenario() -> None:
        async with a_sender(enable_idempotence=True) as given:
            given.on_batch = Refusing(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
            for future in given.send(b"a"):
                await future
        assert given.statistics.records_delivered == 1
        assert len(given.requests) == 1

    run(scenario())


def test_a_lost_connection_costs_another_attempt() -> None:
    async def scenario() -> None:
        async with a_sender() as given:
            produce = given.broker.say[ApiKey.PRODUCE]

            def hang_up(request: Message) -> None:
                given.broker.say[ApiKey.PRODUCE] = produce

            given.broker.say[ApiKey.PRODUCE] = hang_up
            (future,) = given.send(b"a")
            assert (await future).offset == 10
        assert given.statistics.retries == 1
        assert given.broker.connections >= 2

    run(scenario())


def test_a_stopped_sender_sends_nothing() -> None:
    async def scenario() -> None:
        async with a_sender() as given:
            given.sender.stop()
            (future,) = given.send(b"a")
            given.sender.pump()
            await asyncio.sleep(0.02)
            assert not future.done()
        assert given.requests == []

    run(scenario())
