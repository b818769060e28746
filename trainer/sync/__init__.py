"""How replicas add up their contributions: one exchange a window, and a few bytes now and then."""

from trainer.sync.exchange import Exchange, Header, Total
from trainer.sync.solo import SoloExchange

__all__ = ["Exchange", "Header", "SoloExchange", "Total"]
