"""Stand-in VPSes with an emulated WAN between them, on a local Docker engine: as a library and by hand.

    python -m tests.testbed up --name NAME          python -m tests.testbed down --name NAME

    with bed(open_workshop(), Plan("mine")) as mine:
        mine.ansible(folder).play("site.yml").check()
        with mine.wan.partition("ap-1"):
            mine.hosts["eu-1"].wait_for(condition, "a thing that must come", within_s=60)

From top to bottom:

    by_hand, demo/             what a person types
    bed, replace               a bed that is up; a host rented anew
    rise                       make one: networks, router, emulator, hosts, vantage point
    router, control_node, provider, seed, networks      the parts of it
    host, faults, playbook, histories                   what a scenario works with
    images, image_build, rootfs, privileges, engine     what they are made with
    plan, addresses, labels, folders, wait              values and pure functions
    wan/                       the emulator: a program of its own

Never imported by the product.
"""
