"""What a client may do, as a field of bits, for clients that ask: everything, while nothing is forbidden.

Bit n stands for operation n of Kafka's ACLs:

| 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| read | write | create | delete | alter | describe | cluster action | describe configs | alter configs | \
idempotent write |
"""

from __future__ import annotations

ON_TOPIC = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
ON_CLUSTER = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
