"""How fast one core turns a range file into Arrow columns with the id verified.

`python bench/decode.py [FILE] [--repeat N]`; without a file, a range of 60,000 entries that our writer makes. The floor
is what nobody can skip: SHA-256, CRC32C and Snappy over the same bytes, measured in the same run. For scale: lakeFS's
own reader in Go was once measured at 1.7 M entries/s on another machine, all fields, without verifying the id.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import cramjam
import google_crc32c
import pyarrow as pa

from graveler.entries import Entry, Timestamp
from graveler.ranges import read_range_columns, write_range
from graveler.sstable.reader import Table, open_table

GO_READER = 1.7e6
WRITTEN = 60_000


def main() -> None:
    """Measures one file and prints the figures."""
    arguments = parsed()
    pa.set_cpu_count(1)
    data, name = loaded(arguments.file) if arguments.file else written()
    table = open_table(data, name)
    expected = name if len(name) == 64 else ""
    before = peak_megabytes()
    count = read_range_columns(data, expected_id=expected).num_rows
    peak = peak_megabytes()
    reading = best(lambda: read_range_columns(data, expected_id=expected), arguments.repeat)
    floor = floor_of(table, arguments.repeat)
    rate = count / reading
    print(f"{name}: {count:,} entries, {len(data):,} bytes, best of {arguments.repeat}, one core")
    print(f"columns with id verified   {reading * 1e3:7.1f} ms   {rate / 1e6:.2f} M entries/s")
    print(f"floor (SHA-256+CRC+Snappy) {floor * 1e3:7.1f} ms   {reading / floor:.2f} times the floor")
    print(f"beside lakeFS's Go reader (1.7 M/s, not verifying, another day): {rate / GO_READER:.2f}")
    print(f"peak memory {peak:.0f} MB, of which {before:.0f} MB before reading (Python, numpy, Arrow, the file)")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Decode a range file into Arrow columns, over and over.")
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--repeat", type=int, default=30)
    return parser.parse_args()


def loaded(path: Path) -> tuple[bytes, str]:
    return path.read_bytes(), path.name


def written() -> tuple[bytes, str]:
    """A range as a table of many small files fills it: every object with an ETag of its own."""
    entries = (
        Entry(
            path=b"tables/events/day=%03d/part-%06d.parquet" % (number // 500, number),
            address=f"data/gq{number // 1000:04d}/{hashlib.md5(b'a%d' % number).hexdigest()[:20]}",
            etag=hashlib.md5(b"%d" % number).hexdigest(),
            size=1000 + number,
            last_modified=Timestamp(1_750_000_000 + number, number),
        )
        for number in range(WRITTEN)
    )
    made = write_range(entries)
    return made.data, made.ref.id


def best(run: Callable[[], object], repeat: int) -> float:
    """Seconds of the quickest of so many runs."""
    return min(seconds(run) for _ in range(repeat))


def seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def floor_of(table: Table, repeat: int) -> float:
    """Seconds for the digests and the unpacking alone, over the same bytes."""
    spelled = b"".join(b"%d%b|%d%b|" % (len(key), key, len(value), value) for key, value in table.records())
    spans = list(zip(table.offsets.tolist(), table.sizes.tolist(), strict=True))
    room = bytearray(max(len(block) for _, block in table.blocks()))

    def checksums() -> None:
        for offset, size in spans:
            google_crc32c.value(table.data[offset : offset + size + 1])

    def unpacking() -> None:
        view = memoryview(table.data)
        for offset, size in spans:
            if table.data[offset + size]:
                cramjam.snappy.decompress_raw_into(view[offset : offset + size], room)

    digest = best(lambda: hashlib.sha256(spelled), repeat)
    return digest + best(checksums, repeat) + best(unpacking, repeat)


def peak_megabytes() -> float:
    """Most memory that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
