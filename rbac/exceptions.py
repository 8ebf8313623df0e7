"""The one mistake that only a programmer can make here."""


class AppendOnly(TypeError):
    """Somebody tried to change or remove an audit event through the application."""
