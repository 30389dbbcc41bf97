package submit

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// TestPythonModuleMakesTheSameObjects holds docs/examples/python/tideline.py to what the command makes of the same wishes.
func TestPythonModuleMakesTheSameObjects(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here")
	}
	folder := t.TempDir()
	for name, c := range map[string]struct {
		script, wishes string
		request        request
	}{
		"a script of Python": {
			script: "train.py",
			wishes: `workers=(2, 8), gpus=2, cpu="4", memory="16Gi", env={"LR": "$(X)"}, arguments=["--epochs", 3, "$(HOME)"],
				tier="main-traffic", task="ctr", data={"clicks": "2026-11"}`,
			request: request{
				min: 2, max: 8, tier: "main-traffic", task: "ctr", arguments: []string{"--epochs", "3", "$(HOME)"},
				data: []v1beta1.JobDataSet{{Name: "clicks", Version: "2026-11"}},
			},
		},
		"a script of the shell": {script: "run.sh", wishes: `workers=3`, request: request{min: 3, max: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(folder, c.script)
			if err := os.WriteFile(path, []byte("echo é\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := c.request
			r.namespace, r.name, r.script, r.content, r.image = "ads", "ctr", c.script, "echo é\n", "registry.example/ctr:1"
			if c.script == "train.py" {
				var err error
				r.resources, err = parseResources(2, "nvidia.com/gpu", "4", "16Gi")
				g.Expect(err).NotTo(HaveOccurred())
				r.env, err = parseEnvironment([]string{"LR=$(X)"})
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				r.resources = corev1.ResourceList{}
			}
			job, scripts := r.objects()
			made := runPython(t, folder, `
import json, sys, tideline
job = tideline.Job("ctr", image="registry.example/ctr:1", script=sys.argv[1], `+c.wishes+`)
print(json.dumps(job.objects("ads")))`, path)
			g.Expect(made).To(HaveLen(2))
			g.Expect(asSent(t, made[0], &v1beta1.ElasticTrainingJob{})).To(MatchJSON(asSent(t, job, &v1beta1.ElasticTrainingJob{})))
			g.Expect(asSent(t, made[1], &corev1.ConfigMap{})).To(MatchJSON(asSent(t, scripts, &corev1.ConfigMap{})))
		})
	}
}

// runPython runs a program that may import the module, and returns the list that it prints.
func runPython(t *testing.T, folder, program string, arguments ...string) []json.RawMessage {
	t.Helper()
	module, err := filepath.Abs("../../../docs/examples/python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{"-c", program}, arguments...)...)
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "PYTHONPATH="+module, "PYTHONDONTWRITEBYTECODE=1")
	var complained bytes.Buffer
	cmd.Stderr = &complained
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3: %v: %s", err, complained.String())
	}
	var list []json.RawMessage
	if err := json.Unmarshal(printed, &list); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	return list
}

// asSent is an object as the API server would read it; a field that its kind lacks fails the test.
func asSent(t *testing.T, object any, kind any) []byte {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	read := json.NewDecoder(bytes.NewReader(content))
	read.DisallowUnknownFields()
	if err := read.Decode(kind); err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	if content, err = json.Marshal(kind); err != nil {
		t.Fatal(err)
	}
	return content
}
