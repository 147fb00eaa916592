"""Compiles the hot modules with Cython where a C compiler is found; without one they run interpreted.

Every extension is optional: a failed compilation is one warning, and the plain Python twin serves.
"""

import os
import sys

from setuptools import Extension, setup

# Loops over bytes, which check their bounds themselves.
KERNELS = {
    "odradek.records.kernels": "src/odradek/records/kernels.py",
    "odradek.records.record_index": "src/odradek/records/record_index.py",
    "odradek.records.record_objects": "src/odradek/records/record_objects.py",
    "odradek.records.batch_scan": "src/odradek/records/batch_scan.py",
    "odradek.records.encoding": "src/odradek/records/encoding.py",
    "odradek.records.checksums": "src/odradek/records/checksums.py",
    "odradek.records.columns": "src/odradek/records/columns.py",
    "odradek.records.column_sinks": "src/odradek/records/column_sinks.py",
    "odradek.records.hashes": "src/odradek/records/hashes.py",
    "odradek.log.scan_kernels": "src/odradek/log/scan_kernels.py",
    "odradek.client.consumer.consumer_record": "src/odradek/client/consumer/consumer_record.py",
    "odradek.client.producer.batch": "src/odradek/client/producer/batch.py",
    "odradek.client.producer.accumulator": "src/odradek/client/producer/accumulator.py",
    "odradek.client.producer.send_path": "src/odradek/client/producer/send_path.py",
    "odradek.log.cleaner.kernels": "src/odradek/log/cleaner/kernels.py",
    "odradek.log.cleaner.copy_kernels": "src/odradek/log/cleaner/copy_kernels.py",
    "odradek.protocol.native.plan": "src/odradek/protocol/native/plan.pyx",
    "odradek.protocol.native.reader": "src/odradek/protocol/native/reader.pyx",
    "odradek.protocol.native.writer": "src/odradek/protocol/native/writer.pyx",
}
# Ordinary code on hot ways, with C types; what Python checks is checked.
WAYS = {
    "odradek.common.clock": "src/odradek/common/clock.py",
    "odradek.records.acceptance": "src/odradek/records/acceptance.py",
    "odradek.records.lz4_frames": "src/odradek/records/lz4_frames.py",
    "odradek.metrics.counters": "src/odradek/metrics/counters.py",
    "odradek.log.file_system": "src/odradek/log/file_system.py",
    "odradek.log.files": "src/odradek/log/files.py",
    "odradek.log.sparse_index": "src/odradek/log/sparse_index.py",
    "odradek.log.offset_index": "src/odradek/log/offset_index.py",
    "odradek.log.time_index": "src/odradek/log/time_index.py",
    "odradek.log.segment_end": "src/odradek/log/segment_end.py",
    "odradek.log.segment_reads": "src/odradek/log/segment_reads.py",
    "odradek.log.segments": "src/odradek/log/segments.py",
    "odradek.log.reading": "src/odradek/log/reading.py",
    "odradek.log.warmth": "src/odradek/log/warmth.py",
    "odradek.log.warming": "src/odradek/log/warming.py",
    "odradek.log.producers": "src/odradek/log/producers.py",
    "odradek.log.log_tail": "src/odradek/log/log_tail.py",
    "odradek.net.connection": "src/odradek/net/connection.py",
    "odradek.net.gate": "src/odradek/net/gate.py",
    "odradek.net.frames": "src/odradek/net/frames.py",
    "odradek.net.outgoing": "src/odradek/net/outgoing.py",
    "odradek.net.exchange": "src/odradek/net/exchange.py",
    "odradek.broker.purgatory": "src/odradek/broker/purgatory.py",
    "odradek.broker.file_parts": "src/odradek/broker/file_parts.py",
    "odradek.broker.fetch_sessions": "src/odradek/broker/fetch_sessions.py",
    "odradek.broker.context": "src/odradek/broker/context.py",
    "odradek.broker.dispatch": "src/odradek/broker/dispatch.py",
    "odradek.broker.handlers.produce": "src/odradek/broker/handlers/produce.py",
    "odradek.broker.handlers.fetch": "src/odradek/broker/handlers/fetch.py",
    "odradek.broker.progress": "src/odradek/broker/progress.py",
    "odradek.protocol.produce_template": "src/odradek/protocol/produce_template.py",
    "odradek.protocol.fetch_template": "src/odradek/protocol/fetch_template.py",
    "odradek.client.consumer.fetched": "src/odradek/client/consumer/fetched.py",
    "odradek.client.consumer.inbox": "src/odradek/client/consumer/inbox.py",
    "odradek.client.consumer.reader": "src/odradek/client/consumer/reader.py",
    "odradek.client.consumer.fetch_session": "src/odradek/client/consumer/fetch_session.py",
    "odradek.client.consumer.poll_path": "src/odradek/client/consumer/poll_path.py",
    "odradek.client.consumer.steady_way": "src/odradek/client/consumer/steady_way.py",
    "odradek.client.answers": "src/odradek/client/answers.py",
    "odradek.client.in_flight": "src/odradek/client/in_flight.py",
    "odradek.client.loan": "src/odradek/client/loan.py",
    "odradek.client.connection": "src/odradek/client/connection.py",
    "odradek.client.producer.idempotence": "src/odradek/client/producer/idempotence.py",
    "odradek.client.producer.lone_way": "src/odradek/client/producer/lone_way.py",
    "odradek.replication.watermark": "src/odradek/replication/watermark.py",
    "odradek.replication.partition": "src/odradek/replication/partition.py",
}
JOBS = os.cpu_count() or 1
UNCHECKED = {"boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False}


def extensions() -> list[Extension]:
    """The modules to compile; none with ODRADEK_PURE_PYTHON=1 or without Cython."""
    if os.environ.get("ODRADEK_PURE_PYTHON") == "1":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("warning: Cython is missing; odradek will run interpreted and slowly", file=sys.stderr)
        return []
    compiled = []
    for modules, directives in ((KERNELS, UNCHECKED), (WAYS, {})):
        compiled += cythonize(
            [
                Extension(name, [path], extra_compile_args=["-O3", "-fno-strict-aliasing"])
                for name, path in modules.items()
                if os.path.exists(path)
            ],
            build_dir="build/cython",
            compiler_directives={"language_level": "3", **directives},
            nthreads=JOBS,
            quiet=True,
        )
    for module in compiled:
        module.optional = True  # cythonize makes new Extension objects and forgets this
    return compiled


if __name__ == "__main__":  # Cython's own processes import this file
    setup(ext_modules=extensions(), options={"build_ext": {"parallel": JOBS}})
