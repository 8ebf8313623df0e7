"""The API's answers as people read them on a terminal."""
