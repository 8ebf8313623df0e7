"""lakeFS's committed format: ranges, metaranges, entries, and the chain of identities up to a commit.

- `ranges`, `metarange`: read and write the files; `entries`: what a range holds; `diff`: what changed.
- `identity`: ids of entries, files and commits; `splitting`: where ranges end.
- `sstable`, `sstable_writer`, `blocks`, `values`, `wire`: the layers of bytes below.
- `columns`, `lanes`: the same reading, for a whole range at once and into Arrow.
- `verify`, `dump`, `files`, `__main__`: the commands.

What a reader promises. It accepts a file only if it accounts for every byte: blocks without gaps, each with a right
checksum, a footer with nothing unknown in it, keys that ascend, a count that agrees. With `expected_id` the id is
recomputed before the first entry is handed out. The id covers every byte of every record, so also each entry's recorded
identity; that this identity is the digest of the entry's own fields (size, ETag, metadata, content type) is a promise
of whoever wrote the file. `verify` recomputes that too, entry by entry; the reading functions don't, since a file
that has the id which its commit names is what lakeFS wrote.
"""
