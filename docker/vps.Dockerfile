# Stand-in VPSes of the test bed. ROOTFS is debian:<suite>-slim where a registry can be reached, else what mmdebstrap made.
#   base   what trainer.Dockerfile builds on for the CPU: python3, tini, certificates
#   wan    the router between the hosts, and the control node's vantage point
#   plain  a new VPS: systemd, sshd, nothing else
#   ready  the same with the packages that the roles would install, to save their download
ARG ROOTFS
FROM ${ROOTFS} AS base
RUN set -e; python3 -V && tini --version && test -s /etc/ssl/certs/ca-certificates.crt && exit 0; \
    apt-get update; DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 tini ca-certificates; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*
CMD ["bash"]

FROM base AS wan
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends iproute2 iptables iputils-ping openssh-client \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
ENTRYPOINT ["tini", "--"]
CMD ["sleep", "infinity"]

FROM base AS plain
ENV container=docker
# Masked: what needs a console, hardware or a kernel of its own, and what would start downloads behind a test's back.
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      systemd systemd-sysv dbus openssh-server python3 python3-apt sudo iproute2 iputils-ping procps ca-certificates kmod \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /etc/ssh/ssh_host_* /etc/machine-id \
 && systemctl mask getty.target console-getty.service systemd-udevd.service systemd-modules-load.service \
      systemd-logind.service apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer dpkg-db-backup.timer \
      systemd-resolved.service systemd-networkd.service sys-kernel-config.mount sys-kernel-debug.mount
# The machine id is made before init: without one systemd takes each boot for the first and applies presets.
# It and the SSH host keys belong to the host, so none is baked in.
RUN printf '%s\n' '#!/bin/sh' 'systemd-machine-id-setup >/dev/null 2>&1' 'exec /sbin/init' >/usr/local/sbin/boot \
 && printf '%s\n' '[Unit]' 'Description=SSH host keys of this host' 'Before=ssh.service' \
      '[Service]' 'Type=oneshot' 'ExecStart=/usr/bin/ssh-keygen -A' \
      '[Install]' 'WantedBy=multi-user.target' >/etc/systemd/system/testbed-hostkeys.service \
 && printf '%s\n' '[Unit]' 'Description=Routes to the other regions through the emulated WAN' 'Before=network.target ssh.service' \
      'ConditionPathExists=/etc/testbed-routes' \
      '[Service]' 'Type=oneshot' 'RemainAfterExit=yes' 'ExecStart=/sbin/ip -batch /etc/testbed-routes' \
      '[Install]' 'WantedBy=multi-user.target' >/etc/systemd/system/testbed-routes.service \
 && chmod 0755 /usr/local/sbin/boot && systemctl enable testbed-hostkeys.service testbed-routes.service ssh.service
STOPSIGNAL SIGRTMIN+3
CMD ["/usr/local/sbin/boot"]

FROM plain AS ready
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      docker.io iptables nftables wireguard-go wireguard-tools python3-docker \
 && rm -rf /var/cache/apt/* \
 && systemctl disable docker.service docker.socket containerd.service
