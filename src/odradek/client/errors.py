"""Errors raised by clients; those reported by brokers are in broker_errors.py.

    OdradekError
      ConfigError                  an invalid setting
      KafkaError
        BrokerError                a broker returned an error; one class for each code
      ClientError                  an error detected by the client
        ConnectionFailed           no connection could be made
          AdvertisedListenerUnreachable
          NoBrokersAvailable       ... to any bootstrap server
        ConnectionLost             a connection ended while requests were in flight
          RequestTimedOut
        NotAKafkaBroker            the server there uses another protocol
        UnsupportedByBroker        the broker is too old, or too new, for a request
        DeadlineExceeded           the time for the whole call is over
        ClientClosed, ClientForked, CalledFromCallback   the client cannot be used, or not here

The attribute `is_retriable` says whether a retry may succeed.
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError, OdradekError


def is_retriable(error: BaseException) -> bool:
    """Whether the same call may succeed later."""
    return isinstance(error, BrokerError | ClientError) and error.is_retriable


def described(error: BaseException) -> str:
    """An error as part of another message: the name of a broker's error is only in its class."""
    return f"{type(error).__name__}: {error}" if isinstance(error, BrokerError) else str(error)


class BrokerError(KafkaError):
    """A broker returned an error code, and perhaps a message."""

    def __init__(self, message: str = "", *, error_code: ErrorCode | None = None) -> None:
        super().__init__(message, error_code=error_code)
        self.message = message

    @property
    def is_retriable(self) -> bool:
        """Whether a retry may succeed."""
        return self.error_code.is_retriable


class ClientError(OdradekError):
    """An error detected by the client."""

    is_retriable = False


class ConnectionFailed(ClientError, ConnectionError):
    """No connection could be made to an address."""

    is_retriable = True

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"cannot connect to {address}: {reason}")

    def __str__(self) -> str:
        return str(self.args[0])


class NoBrokersAvailable(ConnectionFailed):
    """Not one of the bootstrap servers could be used; `reasons` has a message for each."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        tried = "; ".join(f"{address}: {reason}" for address, reason in self.reasons.items())
        super().__init__(", ".join(self.reasons), tried)
        self.args = (f"no bootstrap server can be reached ({tried})",)


class AdvertisedListenerUnreachable(ConnectionFailed):
    """The cluster was reached, but the advertised address of a broker cannot be reached from here."""

    def __init__(self, node_id: int, address: str, reason: str, reached: str) -> None:
        self.node_id = node_id
        self.reached = reached
        super().__init__(address, reason)
        self.args = (
            f"cannot connect to broker {node_id} at {address}: {reason}. The cluster was reached through "
            f"{reached}, and it says that broker {node_id} is at {address}: either that broker is down, or "
            f"its advertised.listeners names an address that this machine cannot use; set it to one that "
            f"clients can reach",
        )


class ConnectionLost(ClientError, ConnectionError):
    """A connection ended with requests in flight; it is unknown whether they were carried out."""

    is_retriable = True

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"the connection to {address} was lost: {reason}")

    def __str__(self) -> str:
        return str(self.args[0])


class RequestTimedOut(ConnectionLost, TimeoutError):
    """A broker did not respond within `request_timeout_ms`, so that its connection was closed."""

    def __init__(self, address: str, api: str, timeout_ms: int) -> None:
        self.api = api
        self.timeout_ms = timeout_ms
        super().__init__(address, f"no response to {api} within {timeout_ms} ms")


class NotAKafkaBroker(ClientError):
    """The server at an address does not use Kafka's protocol."""

    def __init__(self, address: str, problem: str) -> None:
        self.address = address
        self.problem = problem
        super().__init__(f"{address} does not respond like a Kafka broker: {problem}")


class UnsupportedByBroker(ClientError):
    """A broker serves no version of an API that this client supports."""

    def __init__(self, address: str, api: str, ours: str, theirs: str) -> None:
        self.address = address
        self.api = api
        super().__init__(f"the broker at {address} serves {api} in {theirs}; this client supports {ours}")


class DeadlineExceeded(ClientError, TimeoutError):
    """A call with its retries exceeded its time limit; the last error is its cause."""

    def __init__(self, what: str, timeout_ms: int, last: BaseException | None = None) -> None:
        self.timeout_ms = timeout_ms
        self.last = last
        because = f": {described(last)}" if last is not None else ""
        super().__init__(f"{what} did not succeed within {timeout_ms} ms{because}")

    def __str__(self) -> str:
        return str(self.args[0])


class ClientClosed(ClientError):
    """A client was used after its `close()`."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this {what} is closed; create a new one")


class ClientForked(ClientError):
    """A client was used in a child process: its thread and its connections belong to the parent."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this {what} was created before a fork; create a new one in the child process")


class CalledFromCallback(ClientError):
    """A blocking call was made from a callback, on the thread that would have to do the work."""

    def __init__(self, what: str) -> None:
        super().__init__(f"a callback of this {what} must not wait for it; use another thread")
