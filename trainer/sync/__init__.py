"""How replicas add up contributions: one exchange a window, and the commit rule for fleets (pure, in `commit/`)."""
