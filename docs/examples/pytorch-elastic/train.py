"""Trains a classifier on however many workers there are. To copy, and to put your own model in.

torchrun starts this script in every worker, and anew whenever the number of workers changes. So nothing here depends on that
number but what is computed from it at each start, and all that must outlive a start is in the checkpoint.

It prints a line of JSON when it starts, after every few steps, and when it ends, and each ten seconds one for Tideline.
"""

import argparse
import json
import math
import os
import signal
import ssl
import time
import urllib.request

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel

FEATURES, CLASSES = 64, 10


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000_000, help="how many samples to train on, all workers together")
    parser.add_argument("--batch", type=int, default=64, help="samples of a step of one process")
    parser.add_argument("--learning-rate", type=float, default=0.01, help="for one process; it grows with their number")
    parser.add_argument("--checkpoint", default="/checkpoints/last.pt", help="on storage that every worker reads")
    parser.add_argument("--checkpoint-steps", type=int, default=100, help="steps between two checkpoints")
    parser.add_argument("--log-steps", type=int, default=10, help="steps between two lines")
    parser.add_argument("--step-seconds", type=float, default=0, help="shortest time of a step, to watch it")
    return parser.parse_args()


# --- what Tideline asks of a training, and is told by it -------------------------------------------------------------------

ASKED = "/etc/tideline/pod/checkpoint-requested"  # there with checkpoint.graceSeconds; empty until somebody asks
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"


def read(path):
    with open(path) as f:
        return f.read().strip()


def asked():
    """The number of the last checkpoint that was asked for, 0 for none."""
    try:
        return int(read(ASKED) or 0)
    except FileNotFoundError:
        return 0


def annotate(**values):
    """Annotates the pod that this runs in, whose name is its host name. Training goes on where that fails."""
    body = {"metadata": {"annotations": {"tideline.io/" + k.replace("_", "-"): str(v) for k, v in values.items()}}}
    try:
        request = urllib.request.Request(
            f"https://kubernetes.default.svc/api/v1/namespaces/{read(ACCOUNT + 'namespace')}/pods/{os.environ['HOSTNAME']}",
            method="PATCH",
            data=json.dumps(body).encode(),
            headers={"Authorization": "Bearer " + read(ACCOUNT + "token"), "Content-Type": "application/merge-patch+json"},
        )
        trusted = ssl.create_default_context(cafile=ACCOUNT + "ca.crt")
        urllib.request.urlopen(request, timeout=10, context=trusted).close()
    except OSError as error:
        say(event="annotate", error=str(error))


# --- the training ----------------------------------------------------------------------------------------------------------


def say(**values):
    print(json.dumps({"time": round(time.time(), 3), **values}), flush=True)


def samples_of(numbers, teacher):
    """The samples of these numbers, the same whoever asks: what a data set is read by. The teacher knows their classes."""
    generator = torch.Generator()
    x = torch.stack([torch.randn(FEATURES, generator=generator.manual_seed(n)) for n in numbers])
    return x, (x @ teacher).argmax(dim=1)


def save(path, state):
    """Writes a checkpoint, whole or not at all."""
    with open(path + ".new", "wb") as f:
        torch.save(state, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".new", path)


def load(path, device):
    """The last checkpoint, which rank 0 reads and tells the others, so that all go on from the same; None before the first."""
    saved = [None]
    if dist.get_rank() == 0 and os.path.exists(path):
        saved = [torch.load(path, map_location="cpu")]
    dist.broadcast_object_list(saved, device=device)
    return saved[0]


class Training:
    """A training from its last checkpoint on. Steps and samples are those of all its starts."""

    def __init__(self, o, device):
        self.options, self.device = o, device
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(0)
        self.teacher = torch.randn(FEATURES, CLASSES)
        net = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, CLASSES)).to(device)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=o.learning_rate, momentum=0.9)
        self.step = self.samples = 0
        self.kept = None  # how far the last checkpoint is
        self.phase, self.told = None, 0.0  # what Tideline was told last, and when
        self.answered = 0  # the last request that rank 0 answered
        saved = load(o.checkpoint, device)
        if saved:
            net.load_state_dict(saved["net"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step, self.samples, self.answered = saved["step"], saved["samples"], saved["answered"]
            self.kept = self.batches()
            if self.rank == 0 and self.answered > 0 and self.answered == asked():
                annotate(checkpoint_done=self.answered)  # It is saved, but nobody may have been told.
        for group in self.optimizer.param_groups:
            group["lr"] = o.learning_rate * self.world  # a step of all of them is of as many times the samples
        self.net = net
        self.model = DistributedDataParallel(net)
        self.loss = nn.CrossEntropyLoss()

    def state(self):
        return {
            "net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step, "samples": self.samples,
            "answered": self.answered,
        }

    def anybody(self, says):
        """Whether any worker says so. All hear it after the same step."""
        heard = torch.tensor([float(bool(says))], device=self.device)
        dist.all_reduce(heard, op=dist.ReduceOp.MAX)
        return heard.item() > 0

    def train_step(self):
        """One step of all workers: each takes its part of the next samples."""
        batch = self.options.batch
        first = self.samples + self.rank * batch
        x, y = samples_of(range(first, first + batch), self.teacher)
        loss = self.loss(self.model(x.to(self.device)), y.to(self.device))
        self.optimizer.zero_grad()
        loss.backward()  # here workers wait for each other
        self.optimizer.step()
        self.step += 1
        self.samples += batch * self.world
        return loss.item()

    def batches(self):
        """How far the training is. A batch is one process's, so that it is the same share of all with any number of workers."""
        return min(self.samples, self.options.samples) // self.options.batch

    def tell(self, phase="train"):
        """Tells Tideline (spec.progress, docs/progress.md): at most once in ten seconds, apart from where a phase begins."""
        if self.rank != 0 or phase == self.phase and time.monotonic() - self.told < 10:
            return
        total = math.ceil(self.options.samples / self.options.batch)
        kept = "" if self.kept is None else f" checkpoint={self.kept}"
        print(f"tideline: step={self.batches()} total={total}{kept} phase={phase}", flush=True)
        self.phase, self.told = phase, time.monotonic()

    def after_step(self, loss):
        """What rank 0, which runs in worker 0, does between two steps."""
        o = self.options
        number = asked()
        wanted = number not in (0, self.answered)  # A pod that was created anew may be asked with a lower one.
        if wanted or self.step % o.checkpoint_steps == 0:
            self.answered = number
            now = int(time.time())  # of which the checkpoint is, however long it takes to save
            self.tell("checkpoint")
            save(o.checkpoint, self.state())
            self.kept = self.batches()
            say(event="checkpoint", step=self.step, asked=wanted)
            annotate(checkpoint_done=max(number, now), progress=self.step)
        if self.step % o.log_steps == 0:
            rate = self.optimizer.param_groups[0]["lr"]
            say(event="step", step=self.step, world=self.world, samples=self.samples, rate=rate, loss=round(loss, 4))
        self.tell()


@record  # so that what the container says last, and with it the job's status, is the error and not torchrun's word for it
def main():
    o = options()
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")

    t = Training(o, device)
    say(event="start", rank=t.rank, world=t.world, step=t.step, restarts=int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)))
    t.tell("start")
    leaving = []  # Until here nothing is lost by dying at once.
    signal.signal(signal.SIGTERM, lambda *_: leaving.append(True))
    while True:
        # Whoever must leave says so, and all stop after the same step. If a worker dies without a word, the next step fails
        # everywhere, and all go back to the last checkpoint.
        somebody_leaves, done = t.anybody(leaving), t.samples >= o.samples
        if somebody_leaves or done:
            break
        began = time.monotonic()
        loss = t.train_step()
        if t.rank == 0:
            t.after_step(loss)
        time.sleep(max(0, o.step_seconds - (time.monotonic() - began)))
    if t.rank == 0:
        t.tell("checkpoint")
        save(o.checkpoint, t.state())
        t.kept = t.batches()
        t.tell("end" if done else "train")
    t.anybody(False)  # Nobody goes before it is saved, and if that fails, all of them do.
    say(event="end" if done else "left" if leaving else "again", rank=t.rank, step=t.step, samples=t.samples)
    if not somebody_leaves:
        # The model holds the group too. If it went last, Python would wait under its lock for a thread of gloo that may wait for it.
        del t.model
        dist.destroy_process_group()
    elif not leaving and not done:
        raise SystemExit(1)  # Who stays is started anew by torchrun, with those who stay too.


if __name__ == "__main__":
    main()
