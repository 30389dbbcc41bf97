package docs

import (
	"os/exec"
	"strings"
	"testing"
)

// A training of three ranks on two workers, as rank 0 sees it, without PyTorch: worker 1 has been twice as slow as the others.
const compares = `
import sys, types
torch, dist = types.ModuleType("torch"), types.ModuleType("torch.distributed")
torch.cuda = types.SimpleNamespace(is_available=lambda: False)
torch.distributed, dist.is_initialized, dist.get_world_size = dist, lambda: True, lambda: 3
def gather(everybody, mine):
    assert mine[1] == 0 and mine[0] > 0, mine
    everybody[:] = [(1.0, 0), (1.25, 0), (2.5, 1)]
dist.all_gather_object = gather
sys.modules.update({"torch": torch, "torch.distributed": dist})
import socket
socket.gethostname = lambda: "ctr-worker-0"
from stragglers import Stragglers
from tideline_progress import Progress
slow, progress = Stragglers(every=2), Progress(total=9, every=0)
for step in range(1, 4):
    with slow.own_part():
        sum(range(1000))
    progress.step(step, 0.5, **slow.compare(step))
`

func TestRanksSayWhichWorkerIsSlow(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	run := exec.CommandContext(t.Context(), "python3", "-c", compares)
	run.Dir = "examples/progress"
	run.Env = append(run.Environ(), "PYTHONDONTWRITEBYTECODE=1", "RANK=0")
	said, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	want := "tideline: step=1 total=9 loss=0.5\ntideline: step=2 total=9 loss=0.5 slowest=1 slowness=2.0\n" +
		"tideline: step=3 total=9 loss=0.5\n"
	if got := strings.ReplaceAll(string(said), "\r", ""); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
