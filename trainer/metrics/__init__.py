"""Measuring: time, data wait and memory of each accumulation window, as JSON lines and for Prometheus."""
