"""What can go wrong when Spark reads topics and log directories."""

from __future__ import annotations

from odradek.common.errors import OdradekError


class WrongColumns(OdradekError):
    """A schema was asked for that the source does not have."""


class UnknownTopic(OdradekError):
    """A topic or a partition that was asked for does not exist."""


class DataLost(OdradekError):
    """Records that the query was to read are gone; with failOnDataLoss=false they are skipped."""


class OtherSubscription(OdradekError):
    """A checkpoint has offsets of partitions that the query does not read."""


class ReadFailed(OdradekError):
    """Records could not be read; the message names the partition and the cause."""


class DamagedRecords(ReadFailed):
    """Records on a broker's disk are damaged, which reading again does not change."""


def sentence_of(error: BaseException) -> str:
    """The sentence of an error of ours that Spark passed on within a traceback; else the first line.

    A PySpark error carries the traceback of the Python worker as text: its last line that names an exception
    of odradek has the sentence.
    """
    if isinstance(error, OdradekError):
        return str(error)
    lines = str(error).splitlines()
    ours = [line.strip() for line in lines if line.strip().startswith("odradek.")]
    if ours:
        return ours[-1].partition(": ")[2] or ours[-1]
    return next((line for line in lines if line.strip()), type(error).__name__)
