"""What a person looks at: the table of who trains what, and the picture of a run. No torch."""
