"""Trains a classifier on however many workers there are. To copy, and to put your own model in.

torchrun starts this script in every worker, and anew whenever the number of workers changes. So nothing here depends on that
number but what is computed from it at each start, and all that must outlive a start is in the checkpoint.

It prints a line of JSON when it starts, after every few steps, and when it ends.
"""

import argparse
import json
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
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


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
        self.answered = 0  # the last request that rank 0 answered since it started
        if os.path.exists(o.checkpoint):
            saved = torch.load(o.checkpoint, map_location=device)
            net.load_state_dict(saved["net"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step, self.samples = saved["step"], saved["samples"]
        for group in self.optimizer.param_groups:
            group["lr"] = o.learning_rate * self.world  # a step of all of them is of as many times the samples
        self.net = net
        self.model = DistributedDataParallel(net)
        self.loss = nn.CrossEntropyLoss()

    def state(self):
        return {
            "net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step, "samples": self.samples,
        }

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

    def after_step(self, loss):
        """What rank 0, which runs in worker 0, does between two steps."""
        o = self.options
        number = asked()
        due = self.step % o.checkpoint_steps == 0
        if due or number > self.answered:
            save(o.checkpoint, self.state())
            say(event="checkpoint", step=self.step, asked=number > self.answered)
        if number > self.answered:
            annotate(checkpoint_done=number, progress=self.step)
            self.answered = number
        elif due:
            annotate(checkpoint_done=int(time.time()), progress=self.step)
        if self.step % o.log_steps == 0:
            say(event="step", step=self.step, world=self.world, samples=self.samples, loss=round(loss, 4))


@record  # so that what the container says last, and with it the job's status, is the error and not torchrun's word for it
def main():
    o = options()
    leaving = []
    signal.signal(signal.SIGTERM, lambda *_: leaving.append(True))
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")

    t = Training(o, device)
    say(event="start", rank=t.rank, world=t.world, step=t.step, restarts=int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)))
    try:
        while t.samples < o.samples and not leaving:
            began = time.monotonic()
            loss = t.train_step()
            if t.rank == 0:
                t.after_step(loss)
            time.sleep(max(0, o.step_seconds - (time.monotonic() - began)))
    finally:  # also when a worker left in the middle of a step: the last whole one is saved
        if t.rank == 0:
            save(o.checkpoint, t.state())
        say(event="end" if t.samples >= o.samples else "left", rank=t.rank, step=t.step, samples=t.samples)
    if not leaving:
        dist.destroy_process_group()  # who leaves does not wait for those who stay


if __name__ == "__main__":
    main()
