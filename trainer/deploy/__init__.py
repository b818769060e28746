"""What the control node decides and writes for hosts. No torch."""
