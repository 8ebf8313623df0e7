"""The commands, by what people do with them."""
