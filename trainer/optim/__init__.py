"""The optimizer step: rate, update, averaged weights."""
