"""What a run did, as an append-only history of events, and the checkers that judge it. No torch."""
