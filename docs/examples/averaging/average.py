"""Averages checkpoints into one model, as the program of a MergeJob over a window: see docs/averaging.md.

Files that end with .safetensors need nothing but Python, and are faster with numpy; .pt and .pth need PyTorch. All must have the
same tensors of the same shapes and types. Floating point is averaged; what is not, such as counters, is the newest checkpoint's.
"""

import array
import gzip
import json
import math
import os
import struct
import sys

import report

try:
    import numpy
except ImportError:
    numpy = None

CHUNK = 1 << 20                              # numbers in memory at a time, of one file
FLOATS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
LONGEST_HEADER = 100_000_000                 # as safetensors itself has it


class Checkpoint:
    """A safetensors file: the length of a header, the header in JSON, and the bytes of all tensors."""

    def __init__(self, path):
        self.path, self.file = path, open(path, "rb")
        start = self.file.read(8)
        size = struct.unpack("<Q", start)[0] if len(start) == 8 else LONGEST_HEADER + 1
        if size > LONGEST_HEADER:
            sys.exit(f"{path} is no safetensors file")
        self.header = json.loads(self.file.read(size))
        self.metadata = self.header.pop("__metadata__", {})
        self.data = 8 + size
        end = max((t["data_offsets"][1] for t in self.header.values()), default=0)
        if os.path.getsize(path) < self.data + end:
            sys.exit(f"{path} is cut off: it has less than its header says")

    def read(self, tensor, at, length):
        self.file.seek(self.data + self.header[tensor]["data_offsets"][0] + at)
        return self.file.read(length)


def average_safetensors(paths, out):
    checkpoints = [Checkpoint(path) for path in paths]
    newest = checkpoints[-1]
    shape = {name: (t["dtype"], t["shape"]) for name, t in newest.header.items()}
    for c in checkpoints:
        other = {name: (t["dtype"], t["shape"]) for name, t in c.header.items()}
        for name in sorted(shape.keys() | other.keys()):
            if shape.get(name) != other.get(name):
                sys.exit(f"{c.path} has tensor {name} as {other.get(name)}, and {newest.path} as {shape.get(name)}")
    header, at = {"__metadata__": {**newest.metadata, "averaged": str(len(paths))}}, 0
    for name, t in newest.header.items():
        begin, end = t["data_offsets"]
        header[name], at = {**t, "data_offsets": [at, at + end - begin]}, at + end - begin
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)          # so that tensors begin at a multiple of eight
    with open(out, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, t in newest.header.items():
            size, width = t["data_offsets"][1] - t["data_offsets"][0], FLOATS.get(t["dtype"], 1)
            for begin in range(0, size, CHUNK * width):
                length = min(CHUNK * width, size - begin)
                if t["dtype"] in FLOATS:
                    parts = [c.read(name, begin, length) for c in checkpoints]
                    file.write(mean_numpy(t["dtype"], parts) if numpy else mean_plain(t["dtype"], parts))
                else:
                    file.write(newest.read(name, begin, length))


def mean_numpy(dtype, parts):
    """The mean of each number, computed with 64 bits."""
    if dtype == "BF16":                      # the upper half of an F32
        widened = [(numpy.frombuffer(p, "<u2").astype("<u4") << 16).view("<f4") for p in parts]
    else:
        widened = [numpy.frombuffer(p, {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[dtype]) for p in parts]
    total = numpy.zeros(len(widened[0]), "<f8")
    for w in widened:
        total += w
    mean = total / len(parts)
    if dtype != "BF16":
        return mean.astype(widened[0].dtype).tobytes()
    bits = mean.astype("<f4").view("<u4").astype("<u8")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16     # to the nearest, and to even between two
    return numpy.where(numpy.isnan(mean), 0x7FC0, rounded).astype("<u2").tobytes()


def mean_plain(dtype, parts):
    """The same without numpy."""
    means = [sum(values) / len(parts) for values in zip(*(unpack(dtype, p) for p in parts))]
    if dtype != "BF16":
        return struct.pack(f"<{len(means)}" + {"F64": "d", "F32": "f", "F16": "e"}[dtype], *means)
    half = array.array("H")
    for bits, mean in zip(struct.unpack(f"<{len(means)}I", struct.pack(f"<{len(means)}f", *means)), means):
        half.append(0x7FC0 if math.isnan(mean) else (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
    return struct.pack(f"<{len(half)}H", *half)


def unpack(dtype, part):
    count = len(part) // FLOATS[dtype]
    if dtype != "BF16":
        return struct.unpack(f"<{count}" + {"F64": "d", "F32": "f", "F16": "e"}[dtype], part)
    return struct.unpack(f"<{count}f", b"".join(b"\0\0" + part[i:i + 2] for i in range(0, len(part), 2)))


def average_torch(paths, out):
    import torch

    def mean(values):
        newest = values[-1]
        if isinstance(newest, dict):
            if any(v.keys() != newest.keys() for v in values):
                sys.exit("the checkpoints differ in their entries")
            return {key: mean([v[key] for v in values]) for key in newest}
        if not torch.is_tensor(newest) or not newest.is_floating_point():
            return newest
        if any(v.shape != newest.shape for v in values):
            sys.exit("the checkpoints differ in the shapes of their tensors")
        return (sum(v.double() for v in values) / len(values)).to(newest.dtype)

    # weights_only: a checkpoint may not bring code of its own.
    torch.save(mean([torch.load(p, map_location="cpu", weights_only=True) for p in paths]), out)


def average(paths, out):
    """Writes the mean of some files to another, whole or not at all."""
    kinds = {os.path.splitext(p)[1] for p in paths}
    if kinds == {".safetensors"}:
        average_safetensors(paths, out + ".new")
    elif kinds and kinds <= {".pt", ".pth"}:
        average_torch(paths, out + ".new")
    else:
        sys.exit(f"cannot average files that end with {sorted(kinds)}")
    os.replace(out + ".new", out)


def main():
    env = os.environ
    if int(env["TIDELINE_INDEX"]) > 0:
        return                               # the work of one pod
    root = env["TIDELINE_STORE_PATH"]
    with gzip.open(env["TIDELINE_INCREMENTS_FILE"], "rt") as names:
        paths = [os.path.join(root, env["TIDELINE_INCREMENTS_PATH"], name.rstrip("\n")) for name in names]
    if not paths:
        sys.exit("there is no checkpoint to average")
    folder = os.path.join(root, env["TIDELINE_OUTPUT_PATH"])
    os.makedirs(folder, exist_ok=True)       # an earlier attempt of this run may have made it
    average(paths, os.path.join(folder, "model" + os.path.splitext(paths[-1])[1]))
    with open(os.path.join(folder, env["TIDELINE_COMPLETION_MARKER"]), "w"):
        pass                                 # for people: Tideline reads the report
    report.append(env["TIDELINE_STORE_REPORT"], "full", env["TIDELINE_RUN_ID"], keep=50)
    print(f"averaged {len(paths)} checkpoints into {folder}")


if __name__ == "__main__":
    main()
