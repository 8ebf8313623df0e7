"""Channels: what people do with them, and what is told of them."""
