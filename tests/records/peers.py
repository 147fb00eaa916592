"""The record code of other clients, whose imports warn about things that are not ours."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka.record import default_records as aiokafka_records
    from kafka.partitioner.default import murmur2 as kafka_python_murmur2
    from kafka.record import default_records as kafka_python_records

__all__ = ["aiokafka_records", "kafka_python_murmur2", "kafka_python_records"]
