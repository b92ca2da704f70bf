#!/usr/bin/env python3
"""Makes digits.bin from a scikit-learn wheel.

Usage: python3 make_digits.py SCIKIT_LEARN_WHEEL [OUTPUT]

Needs only the Python standard library. The layout of digits.bin is described in README.md beside this file.
"""

import gzip
import pathlib
import sys
import zipfile

MEMBER = "sklearn/datasets/data/digits.csv.gz"
IMAGES = 1797
PIXELS = 64


def read_rows(wheel):
    """Returns the 1,797 rows of the data set: 64 pixels, then the label."""
    with zipfile.ZipFile(wheel) as archive:
        text = gzip.decompress(archive.read(MEMBER)).decode("ascii")
    # The values are whole numbers, written either as `5` or as `5.000e+00`.
    return [[float(field) for field in line.split(",")] for line in text.splitlines()]


def pack(rows):
    """Returns the bytes of digits.bin, having checked every value."""
    if len(rows) != IMAGES:
        raise SystemExit(f"expected {IMAGES} rows, found {len(rows)}")
    pixels, labels = bytearray(), bytearray()
    for number, row in enumerate(rows):
        if len(row) != PIXELS + 1:
            raise SystemExit(f"row {number} has {len(row)} values, expected {PIXELS + 1}")
        if any(value != int(value) for value in row):
            raise SystemExit(f"row {number} holds a value that is not whole")
        if not all(0 <= value <= 16 for value in row[:PIXELS]) or not 0 <= row[PIXELS] <= 9:
            raise SystemExit(f"row {number} holds a value out of range")
        pixels.extend(int(value) for value in row[:PIXELS])
        labels.append(int(row[PIXELS]))
    return bytes(pixels + labels)


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    default = pathlib.Path(__file__).with_name("digits.bin")
    output = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else default
    output.write_bytes(pack(read_rows(sys.argv[1])))


if __name__ == "__main__":
    main()
