from __future__ import annotations

import pytest

from odradek.net.frames import BufferPool, FrameAssembler, FrameTooLarge
from odradek.net.protocol_sniffing import guess

LIMIT = 100 * 1024 * 1024


@pytest.mark.parametrize(
    ("first_bytes", "named"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"POST /topics HTTP/1.1\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "TLS"),
        (b"\x16\x03\x03\x00\xf4\x01\x00", "TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
        (b"\x7f\xff\xff\xff", "2147483647 bytes"),
        (b"\xff\xff\xff\xff", "-1 bytes"),
    ],
)
def test_a_frame_that_cannot_be_names_the_protocol_that_it_looks_like(first_bytes, named):
    with pytest.raises(FrameTooLarge, match=named):
        FrameAssembler(LIMIT, BufferPool()).feed(memoryview(first_bytes))


@pytest.mark.parametrize("size", [0, 1, 1000, LIMIT, 2**31 - 1, -1])
def test_ordinary_sizes_look_like_nothing_else(size):
    assert guess(size) is None
