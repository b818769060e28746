"""The few nfnetlink_queue messages that we need, over one netlink socket (linux/netfilter/nfnetlink_queue.h)."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
from collections.abc import Iterable

NETLINK_NETFILTER = 12
SO_RCVBUFFORCE = 33
SOL_NETLINK, NETLINK_NO_ENOBUFS = 270, 5
_REQUEST, _ACK = 1, 4
_PACKET, _VERDICT_BATCH, _CONFIG = 0x300, 3, 2
_CFG_CMD, _CFG_PARAMS, _CFG_MAXLEN, _VERDICT_HEADER = 1, 2, 3, 2
_COPY_PACKET, _CMD_BIND = 2, 1


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class _Msghdr(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("namelen", ctypes.c_uint32),
        ("iov", ctypes.POINTER(_Iovec)),
        ("iovlen", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("controllen", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class _Mmsghdr(ctypes.Structure):
    # Nested, not flattened: the padding after msghdr counts, and with it gone most packets are never seen.
    _fields_ = [("hdr", _Msghdr), ("len", ctypes.c_uint)]


class Nfqueue:
    """Packets waiting in the kernel's queues, and our verdicts on them.

    GSO is left alone on purpose: without NFQA_CFG_F_GSO the kernel splits super-packets before it queues them.
    """

    SLOT, SLOTS = 512, 128  # bytes for a message, messages in one look
    COPY = 20  # bytes of each packet: an IP header, for its length field
    MAXLEN = 200_000  # packets in a queue: 75 ms at 500 Mbit/s is 3100, the kernel's default of 1024 overflows
    RECEIVE_BUFFER = 64 << 20
    _HEAD = struct.Struct("=IHHII")  # nlmsghdr
    _PACKET_ID = struct.Struct(">HxxxxI")  # queue number (nfgenmsg), packet id (first attribute)
    _LENGTHS = struct.Struct(">BxHH")  # IP version, IPv4 total length / IPv6 payload length

    def __init__(self, queues: Iterable[int]) -> None:
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        self.sock.bind((0, 0))
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, self.RECEIVE_BUFFER)
        self.sock.setsockopt(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)
        for queue in queues:
            self._configure(queue, _CFG_CMD, struct.pack("=BBH", _CMD_BIND, 0, 0))
            self._configure(queue, _CFG_PARAMS, struct.pack(">IB", self.COPY, _COPY_PACKET))
            self._configure(queue, _CFG_MAXLEN, struct.pack(">I", self.MAXLEN))
        self._make_slots()

    def receive(self) -> list[tuple[int, int, int]]:
        """Up to SLOTS waiting packets as (queue, packet id, size in bytes)."""
        count = self._recvmmsg(self.sock.fileno(), self._vector, self.SLOTS, socket.MSG_DONTWAIT, None)
        out, buffer, offset = [], self._buffer, 0
        head, packet, lengths = self._HEAD.unpack_from, self._PACKET_ID.unpack_from, self._LENGTHS.unpack_from
        for _ in range(count):
            size, kind, _, _, _ = head(buffer, offset)
            if kind == _PACKET:  # its header is the last attribute
                queue, packet_id = packet(buffer, offset + 18)
                version, total, payload = lengths(buffer, offset + size - self.COPY)
                out.append((queue, packet_id, total if version < 0x60 else payload + 40))
            offset += self.SLOT
        return out

    def verdicts(self, answers: Iterable[tuple[int, int, int]]) -> None:
        """(queue, packet id, verdict): all packets of the queue up to that id get that verdict."""
        messages = [
            self._message(_VERDICT_BATCH, queue, _VERDICT_HEADER, struct.pack(">II", verdict, packet_id), _REQUEST)
            for queue, packet_id, verdict in answers
        ]
        if messages:
            self.sock.send(b"".join(messages))

    def _make_slots(self) -> None:
        self._buffer = bytearray(self.SLOT * self.SLOTS)
        start = ctypes.addressof((ctypes.c_char * len(self._buffer)).from_buffer(self._buffer))
        self._iovecs = (_Iovec * self.SLOTS)()
        self._vector = (_Mmsghdr * self.SLOTS)()
        for i in range(self.SLOTS):
            self._iovecs[i] = _Iovec(start + i * self.SLOT, self.SLOT)
            self._vector[i].hdr.iov = ctypes.pointer(self._iovecs[i])
            self._vector[i].hdr.iovlen = 1
        self._recvmmsg = ctypes.CDLL(None, use_errno=True).recvmmsg

    def _message(self, kind: int, queue: int, attribute: int, payload: bytes, flags: int) -> bytes:
        size = 4 + len(payload)
        body = struct.pack(">BBH", 0, 0, queue) + struct.pack("=HH", size, attribute) + payload
        body += b"\0" * (-size % 4)
        return self._HEAD.pack(16 + len(body), 3 << 8 | kind, flags, 0, 0) + body

    def _configure(self, queue: int, attribute: int, payload: bytes) -> None:
        self.sock.send(self._message(_CONFIG, queue, attribute, payload, _REQUEST | _ACK))
        select.select([self.sock], [], [], 5)
        while True:
            reply = self.sock.recv(65536)
            if self._HEAD.unpack_from(reply)[1] == 2:  # NLMSG_ERROR, which is the acknowledgement as well
                code = -struct.unpack_from("=i", reply, 16)[0]
                if code:
                    raise OSError(code, f"queue {queue}: {os.strerror(code)}")
                return


def kernel_drops() -> dict[int, int]:
    """Queue number -> packets that the kernel gave up because we fell behind."""
    with open("/proc/self/net/netfilter/nfnetlink_queue") as file:
        rows = [[int(number) for number in line.split()] for line in file]
    return {row[0]: row[5] + row[6] for row in rows}
