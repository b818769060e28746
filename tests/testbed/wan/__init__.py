"""A WAN emulator for kernels without netem: packets wait in NFQUEUE, this program says when each one may go.

Standard library only: it also runs inside the router container, where nothing of ours is installed. One queue per
directed pair of nodes; the kernel keeps the packets, we see twenty bytes of each, compute when it is due, and answer
with batch verdicts ("everything up to packet id N").

    link.py      one direction of one path: which packet leaves when (pure)
    table.py     all links: the table's values, what was set, and the faults on top (pure)
    nfqueue.py   the netlink messages          rules.py    the packet filter's rules
    control.py   JSON lines on a unix socket   client.py   the other end of it
    emulator.py  the loop

A run is to be believed only while `kernel_dropped` is 0 and `late_ms_max` is small: ask `stats`.
"""
