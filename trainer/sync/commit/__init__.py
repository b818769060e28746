"""The commit rule: how a step becomes everybody's. A pure state machine; events in, effects out (docs/adr/0060)."""
