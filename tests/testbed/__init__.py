"""Stand-in VPSes with an emulated WAN between them, on a local Docker engine: as a library and by hand.

    python -m tests.testbed up --name NAME          python -m tests.testbed down --name NAME

Never imported by the product.
"""
