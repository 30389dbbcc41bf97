"""What a training says of its steps, for spec.progress of its ElasticTrainingJob: see docs/progress.md. Copy this file.

    progress = Progress(total=5000)
    progress.start(step)                     # once in each process, before the first step
    for step in range(step + 1, 5001):
        loss = train_step()
        progress.step(step, loss)
        if step % 100 == 0:
            with progress.pause("checkpoint", step):
                save(step)
            progress.saved(step)
    progress.end(step)
"""

import contextlib
import math
import os
import time


class Progress:
    """Prints lines on rank 0 and nothing elsewhere: one in `every` seconds at most, apart from those that begin or end a phase."""

    def __init__(self, total=0, every=10.0):
        self.total, self.every = total, every
        self.quiet = int(os.environ.get("RANK", "0")) != 0
        self.last = -math.inf
        self.checkpoint, self.more = None, {}

    def start(self, step=0):
        self.say(step, phase="start")

    def step(self, step, loss=None, **more):
        self.more.update(more)
        if time.monotonic() - self.last >= self.every:
            self.more = self.say(step, loss=loss, **self.more) or {}

    def saved(self, step):
        """A checkpoint of this step is on disk, whole: steps up to it are not lost any more."""
        self.checkpoint = step
        self.say(step)

    @contextlib.contextmanager
    def pause(self, phase, step):
        """No step comes until the end of the block: phase is evaluate or checkpoint."""
        self.say(step, phase=phase)
        yield
        self.say(step)

    def end(self, step):
        self.say(step, phase="end")

    def say(self, step, **more):
        if self.quiet:
            return
        words = {"step": step, "total": self.total or None, "checkpoint": self.checkpoint, **more}
        if words.get("loss") is not None and not math.isfinite(words["loss"]):
            del words["loss"]
        print("tideline: " + " ".join(f"{k}={v}" for k, v in words.items() if v is not None), flush=True)
        self.last = time.monotonic()
