"""Runs a case through the real trainer: `trainer.run.conduct` with the models and data of the case.

Nothing of the trainer is replaced but what a case prescribes: the model, the samples, which replica takes which
micro-batch, and when to stop.
"""
