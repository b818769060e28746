"""Pull the trainer image from the control node's registry through an SSH reverse forward.

The forward is a connection of its own with the very settings that Ansible uses for the host (jump host, port, user,
key, known hosts), so whatever reaches the host carries the image. It lives as long as the pull. Without `control_port`
the host pulls by itself, from a registry that it can reach.
"""

from __future__ import annotations

import selectors
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ansible.errors import AnsibleActionFail

from ansible.plugins.action import ActionBase

READY = b"forwarded"
READY_WITHIN_S = 60.0


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        start = time.monotonic()
        with self._way(arguments.get("registry_port"), arguments.get("control_port")):
            done = self._execute_module(module_args=arguments, task_vars=task_vars)
        layers: Mapping[str, int] = arguments.get("layers") or {}
        travelled = set(done.get("pulled", []))
        done["bytes"] = sum(size for digest, size in layers.items() if digest.removeprefix("sha256:")[:12] in travelled)
        done["seconds"] = round(time.monotonic() - start, 1)
        return {**result, **done}

    @contextmanager
    def _way(self, host_port: Any, control_port: Any) -> Iterator[None]:
        """The host's 127.0.0.1:host_port leads to our 127.0.0.1:control_port while this is entered."""
        if not control_port or self._task.check_mode:
            yield
            return
        tunnel = subprocess.Popen(
            self._forward(int(host_port), int(control_port)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            self._wait_until_ready(tunnel, host_port)
            yield
        finally:
            assert tunnel.stdin and tunnel.stdout and tunnel.stderr
            tunnel.stdin.close()  # `cat` at the other end sees the end of its input and the connection closes
            try:
                tunnel.wait(10)
            except subprocess.TimeoutExpired:
                tunnel.kill()
                tunnel.wait()
            tunnel.stdout.close()
            tunnel.stderr.close()

    def _forward(self, host_port: int, control_port: int) -> list[bytes]:
        """ssh as Ansible would call it, on a connection of its own: `-S none` keeps it off the shared one, where the
        forward would outlive us."""
        build = getattr(self._connection, "_build_command", None)
        if build is None:
            raise AnsibleActionFail(
                f"tunnel_registry needs the connection `ssh`, this host has `{self._connection.transport}`. "
                "Use -e trainer_image_transport=pull."
            )
        host = self._connection.get_option("host") or self._play_context.remote_addr
        extra = ["-S", "none", "-T", "-o", "ExitOnForwardFailure=yes", "-o", "BatchMode=yes"]
        extra += ["-R", f"127.0.0.1:{host_port}:127.0.0.1:{control_port}", host, f"echo {READY.decode()}; exec cat"]
        command: list[bytes] = build(self._connection.get_option("ssh_executable"), "ssh", *extra)
        return command

    def _wait_until_ready(self, tunnel: subprocess.Popen[bytes], host_port: Any) -> None:
        """The remote command runs only after sshd has granted the forward."""
        assert tunnel.stdout and tunnel.stderr
        with selectors.DefaultSelector() as selector:
            selector.register(tunnel.stdout, selectors.EVENT_READ)
            ready = bool(selector.select(READY_WITHIN_S)) and READY in tunnel.stdout.readline()
        if ready:
            return
        tunnel.kill()
        said = tunnel.stderr.read().decode("utf-8", "replace").strip().splitlines()
        raise AnsibleActionFail(
            f"No SSH reverse forward from port {host_port} of the host: {said[-1] if said else 'no answer'}. "
            "sshd must allow it (AllowTcpForwarding), and the port must be free: -e trainer_image_registry_port=PORT."
        )
