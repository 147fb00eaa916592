"""The topic that has the state of all transactions."""

from __future__ import annotations

TRANSACTION_STATE = "__transaction_state"
