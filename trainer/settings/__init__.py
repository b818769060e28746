"""Settings in force, and how new ones reach a run that trains."""
