"""Compiles the hot modules with Cython where a C compiler is found; without one they run interpreted.

Every extension is optional: a failed compilation is one warning, and the plain Python twin serves.
"""

import os
import sys
from itertools import count
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Loops over bytes, which check their bounds themselves.
KERNELS = {
    "odradek.records.kernels.record_check": "src/odradek/records/kernels/record_check.py",
    "odradek.records.kernels.record_index": "src/odradek/records/kernels/record_index.py",
    "odradek.records.kernels.record_objects": "src/odradek/records/kernels/record_objects.py",
    "odradek.records.kernels.batch_scan": "src/odradek/records/kernels/batch_scan.py",
    "odradek.records.kernels.encoding": "src/odradek/records/kernels/encoding.py",
    "odradek.records.kernels.checksums": "src/odradek/records/kernels/checksums.py",
    "odradek.records.kernels.columns": "src/odradek/records/kernels/columns.py",
    "odradek.records.kernels.column_sinks": "src/odradek/records/kernels/column_sinks.py",
    "odradek.records.kernels.hashes": "src/odradek/records/kernels/hashes.py",
    "odradek.log.recovery.scan_kernels": "src/odradek/log/recovery/scan_kernels.py",
    "odradek.client.consumer.consumer_record": "src/odradek/client/consumer/consumer_record.py",
    "odradek.client.producer.batches.batch": "src/odradek/client/producer/batches/batch.py",
    "odradek.client.producer.batches.accumulator": "src/odradek/client/producer/batches/accumulator.py",
    "odradek.client.producer.batches.send_path": "src/odradek/client/producer/batches/send_path.py",
    "odradek.log.cleaner.filter.kernels": "src/odradek/log/cleaner/filter/kernels.py",
    "odradek.log.cleaner.filter.copy_kernels": "src/odradek/log/cleaner/filter/copy_kernels.py",
    "odradek.protocol.native.plan": "src/odradek/protocol/native/plan.pyx",
    "odradek.protocol.native.reader": "src/odradek/protocol/native/reader.pyx",
    "odradek.protocol.native.writer": "src/odradek/protocol/native/writer.pyx",
}
# Ordinary code on the hot path, with C types; what Python checks is checked.
HOT_MODULES = {
    "odradek.common.simulated_clock": "src/odradek/common/simulated_clock.py",
    "odradek.common.clock": "src/odradek/common/clock.py",
    "odradek.records.fast_validation": "src/odradek/records/fast_validation.py",
    "odradek.records.kernels.lz4_frames": "src/odradek/records/kernels/lz4_frames.py",
    "odradek.metrics.counters": "src/odradek/metrics/counters.py",
    "odradek.log.files.file_system": "src/odradek/log/files/file_system.py",
    "odradek.log.files.log_file": "src/odradek/log/files/log_file.py",
    "odradek.log.segment.sparse_index": "src/odradek/log/segment/sparse_index.py",
    "odradek.log.segment.offset_index": "src/odradek/log/segment/offset_index.py",
    "odradek.log.segment.time_index": "src/odradek/log/segment/time_index.py",
    "odradek.log.segment.segment_appender": "src/odradek/log/segment/segment_appender.py",
    "odradek.log.segment.segment_reader": "src/odradek/log/segment/segment_reader.py",
    "odradek.log.segment.segments": "src/odradek/log/segment/segments.py",
    "odradek.log.partition.reading": "src/odradek/log/partition/reading.py",
    "odradek.log.files.page_cache_state": "src/odradek/log/files/page_cache_state.py",
    "odradek.log.partition.read_ahead": "src/odradek/log/partition/read_ahead.py",
    "odradek.log.producers.producer_states": "src/odradek/log/producers/producer_states.py",
    "odradek.log.partition.log_batch": "src/odradek/log/partition/log_batch.py",
    "odradek.log.partition.follower_batches": "src/odradek/log/partition/follower_batches.py",
    "odradek.log.partition.log_appender": "src/odradek/log/partition/log_appender.py",
    "odradek.net.connection": "src/odradek/net/connection.py",
    "odradek.net.request_limit": "src/odradek/net/request_limit.py",
    "odradek.net.frames": "src/odradek/net/frames.py",
    "odradek.net.send_queue": "src/odradek/net/send_queue.py",
    "odradek.net.exchange": "src/odradek/net/exchange.py",
    "odradek.broker.requests.waiting.timeouts": "src/odradek/broker/requests/waiting/timeouts.py",
    "odradek.broker.requests.waiting.purgatory": "src/odradek/broker/requests/waiting/purgatory.py",
    "odradek.broker.requests.fetch.file_parts": "src/odradek/broker/requests/fetch/file_parts.py",
    "odradek.broker.requests.fetch.fetch_sessions": "src/odradek/broker/requests/fetch/fetch_sessions.py",
    "odradek.broker.requests.context": "src/odradek/broker/requests/context.py",
    "odradek.broker.requests.dispatch": "src/odradek/broker/requests/dispatch.py",
    "odradek.broker.handlers.produce": "src/odradek/broker/handlers/produce.py",
    "odradek.broker.handlers.fetch": "src/odradek/broker/handlers/fetch.py",
    "odradek.broker.requests.waiting.partition_listener": "src/odradek/broker/requests/waiting/partition_listener.py",  # noqa: E501
    "odradek.protocol.produce_template": "src/odradek/protocol/produce_template.py",
    "odradek.protocol.fetch_template": "src/odradek/protocol/fetch_template.py",
    "odradek.client.consumer.fetch.fetched": "src/odradek/client/consumer/fetch/fetched.py",
    "odradek.client.consumer.fetch.fetch_buffer": "src/odradek/client/consumer/fetch/fetch_buffer.py",
    "odradek.client.consumer.record_reader": "src/odradek/client/consumer/record_reader.py",
    "odradek.client.consumer.fetch.fetch_session": "src/odradek/client/consumer/fetch/fetch_session.py",
    "odradek.client.consumer.poll_path": "src/odradek/client/consumer/poll_path.py",
    "odradek.client.consumer.fetch.repeat_fetch": "src/odradek/client/consumer/fetch/repeat_fetch.py",
    "odradek.client.network.responses": "src/odradek/client/network/responses.py",
    "odradek.client.network.in_flight": "src/odradek/client/network/in_flight.py",
    "odradek.client.network.direct_read": "src/odradek/client/network/direct_read.py",
    "odradek.client.network.connection": "src/odradek/client/network/connection.py",
    "odradek.client.producer.batches.idempotence": "src/odradek/client/producer/batches/idempotence.py",
    "odradek.client.producer.sending.single_batch_sender": "src/odradek/client/producer/sending/single_batch_sender.py",  # noqa: E501
    "odradek.replication.remote_replica": "src/odradek/replication/remote_replica.py",
    "odradek.replication.watermark": "src/odradek/replication/watermark.py",
    "odradek.replication.partition": "src/odradek/replication/partition.py",
}
JOBS = os.cpu_count() or 1
CHECKED = {"language_level": "3", "show_performance_hints": False}
UNCHECKED = CHECKED | {
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}
# No debug symbols, and -O2 for what is mostly calls into Python: half the time to compile, none lost running.
C_FLAGS = ["-g0", "-O2", "-fno-strict-aliasing"]


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
    for modules, directives in ((KERNELS, UNCHECKED), (HOT_MODULES, CHECKED)):
        compiled += cythonize(
            [
                Extension(name, [path], extra_compile_args=C_FLAGS)
                for name, path in modules.items()
                if os.path.exists(path)
            ],
            build_dir="build/cython",
            compiler_directives=directives,
            nthreads=JOBS,
        )
    for module in compiled:
        module.optional = True  # cythonize makes new Extension objects and forgets this
    return compiled


class CompileWithProgress(build_ext):
    """Prints a line for each module, and removes what was compiled from modules that are no longer listed."""

    def run(self) -> None:
        """Compile everything that changed."""
        self.started = count(1)
        if self.inplace:
            self.remove_unlisted()
        super().run()

    def remove_unlisted(self) -> None:
        """A compiled file without a listed module would be imported in place of the newer source."""
        listed = {Path(self.get_ext_fullpath(name)).resolve() for name in KERNELS | HOT_MODULES}
        for compiled in Path("src").resolve().rglob("*.so"):
            if compiled not in listed:
                compiled.unlink()

    def build_extension(self, extension: Extension) -> None:
        """Compile one module."""
        print(f"[{next(self.started)}/{len(self.extensions)}] compiling {extension.name}", flush=True)
        super().build_extension(extension)


if __name__ == "__main__":  # Cython's own processes import this file
    setup(
        ext_modules=extensions(),
        cmdclass={"build_ext": CompileWithProgress},
        options={"build_ext": {"parallel": JOBS}},
    )
