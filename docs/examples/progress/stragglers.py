"""Which worker is slow: see docs/progress.md#stragglers. Copy this file beside tideline_progress.py.

    slow = Stragglers()
    for step in range(step + 1, 5001):
        with slow.own_part():        # what this rank does alone: no collective, no barrier
            loss = model(next(batches))
        loss.backward()              # here the ranks wait for each other
        progress.step(step, loss.item(), **slow.compare(step))
"""

import contextlib
import socket
import statistics
import time

import torch
import torch.distributed as dist


class Stragglers:
    """All ranks call compare for the same steps. A collective of a few bytes runs once in `every` of them."""

    def __init__(self, every=100):
        self.every, self.took = every, 0.0
        self.worker = int(socket.gethostname().rsplit("-", 1)[1])  # a worker's host is JOB-worker-INDEX

    @contextlib.contextmanager
    def own_part(self):
        begin = time.perf_counter()
        yield
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # kernels run later than they are called
        self.took += time.perf_counter() - begin

    def compare(self, step):
        """The words for Progress.step, after every steps; else none."""
        if step % self.every or not dist.is_initialized():
            return {}
        everybody = [None] * dist.get_world_size()
        dist.all_gather_object(everybody, (self.took, self.worker))
        self.took = 0.0
        slowest, worker = max(everybody)
        usual = statistics.median_low(took for took, _ in everybody)
        return {"slowest": worker, "slowness": round(max(slowest / usual, 1), 3)} if usual > 0 else {}
