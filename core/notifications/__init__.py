"""What people are told of: kinds of alerts, when one opens and closes, which channel hears of it. Pure."""
