"""The table files that ranges and metaranges are: read and written block by block."""
