"""Check everything that a log directory holds, ours or Kafka's, without changing it.

What is read: every batch (header, CRC, the structure of every record, decompressed if need be), every entry
of every index, every snapshot and every checkpoint. What no CRC covers is compared with other files:

    base offset of a batch       rises; no gap before the last batch; indexes; names of segments and snapshots
    leader epoch of a batch      rises; the leader-epoch-checkpoint
    offset index                 the batches at its positions
    time index                   the batches at its offsets; closed segments end with their greatest timestamp
    transaction index            the abort markers, and the transactions they end
    offset checkpoints           the partitions beside them, and where their logs end

What cannot be detected, because it is stored nowhere else:

    a base offset that moves within a gap that compaction has left
    an offset index entry that names a later batch than the one at its position (as Kafka before 4.0 writes
        them on purpose), or a time index entry that names another record of its batch: lookups stay right
    the offsets in a transaction index entry where compaction has removed the transaction
    an epoch in the leader-epoch-checkpoint in which nothing was written
    an offset in a checkpoint that becomes another one inside of the log, unless it is the recovery point and
        the stop was clean
    the topic's id in partition.metadata, unless another partition of the topic is there
    the values in meta.properties and .kafka_cleanshutdown
    files whose names are not those of a log's files
"""
