package docs

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tideline-io/tideline/internal/merging/modelstore"
)

// tensor is one of a safetensors file.
type tensor struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"` //nolint:tagliatelle // the format's own name
	data    []byte
}

// numbers are the bytes of numbers of a type.
func numbers(dtype string, values ...float64) tensor {
	var b bytes.Buffer
	for _, v := range values {
		var n any
		switch dtype {
		case "F64":
			n = v
		case "F32":
			n = float32(v)
		case "F16":
			n = map[float64]uint16{0.5: 0x3800, 1: 0x3C00, 1.5: 0x3E00, 2: 0x4000}[v]
		case "BF16":
			n = uint16(math.Float32bits(float32(v)) >> 16)
		case "I64":
			n = int64(v)
		}
		_ = binary.Write(&b, binary.LittleEndian, n)
	}
	return tensor{DType: dtype, Shape: []int{len(values)}, data: b.Bytes()}
}

// safetensors is a file of some tensors.
func safetensors(t *testing.T, tensors map[string]tensor, order ...string) []byte {
	t.Helper()
	header, body := map[string]any{"__metadata__": map[string]string{"format": "pt"}}, []byte{}
	for _, name := range order {
		x := tensors[name]
		x.Offsets = [2]int{len(body), len(body) + len(x.data)}
		header[name] = x
		body = append(body, x.data...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return slices.Concat(file, text, body)
}

// readSafetensors is what a file has, and its metadata.
func readSafetensors(t *testing.T, path string) (tensors map[string]tensor, metadata map[string]string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := binary.LittleEndian.Uint64(file)
	body, raw := file[8+size:], map[string]json.RawMessage{}
	err = json.Unmarshal(file[8:8+size], &raw)
	tensors = map[string]tensor{}
	for name, text := range raw {
		if name == "__metadata__" {
			err = errorsOf(err, json.Unmarshal(text, &metadata))
			continue
		}
		var x tensor
		err = errorsOf(err, json.Unmarshal(text, &x))
		x.data = body[x.Offsets[0]:x.Offsets[1]]
		tensors[name] = x
	}
	if err != nil {
		t.Fatal(err)
	}
	return tensors, metadata
}

func errorsOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// apiServer serves one ConfigMap to whoever has the token, as the API server does.
type apiServer struct {
	mu      sync.Mutex
	data    map[string]string
	account string
	address *url.URL
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	a := &apiServer{data: map[string]string{}, account: t.TempDir()}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if r.URL.Path != "/api/v1/namespaces/ads/configmaps/llm-merge-store" || r.Header.Get("Authorization") != "Bearer token" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		if r.Method == http.MethodPatch {
			var patch struct{ Data map[string]string }
			kind := r.Header.Get("Content-Type")
			if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || kind != "application/merge-patch+json" {
				http.Error(w, "what?", http.StatusBadRequest)
				return
			}
			maps.Copy(a.data, patch.Data)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": a.data})
	}))
	t.Cleanup(server.Close)
	var err error
	if a.address, err = url.Parse(server.URL); err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string][]byte{"token": []byte("token\n"), "namespace": []byte("ads"), "ca.crt": authority} {
		if err := os.WriteFile(filepath.Join(a.account, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// python runs lines of Python beside the programs of the example, with ConfigMaps from a server.
func python(t *testing.T, server *apiServer, env []string, lines ...string) (string, error) {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("the programs of docs/averaging.md do not run without python3: %v", err)
	}
	setup := fmt.Sprintf("import report; report.ACCOUNT = %q", server.account)
	cmd := exec.CommandContext(t.Context(), interpreter, "-B", "-c", strings.Join(append([]string{setup}, lines...), "\n"))
	cmd.Dir = filepath.Join(repository, "docs", "examples", "averaging")
	paths := cmd.Dir + string(os.PathListSeparator) + os.Getenv("PYTHONPATH")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+paths, "KUBERNETES_SERVICE_HOST="+server.address.Hostname(),
		"KUBERNETES_SERVICE_PORT="+server.address.Port())
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// claim is a volume with checkpoints, and what a merge is told of it.
type claim struct {
	folder string
	env    []string
}

func newClaim(t *testing.T, checkpoints map[string][]byte) *claim {
	t.Helper()
	c := &claim{folder: t.TempDir()}
	var list bytes.Buffer
	z := gzip.NewWriter(&list)
	files := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(checkpoints)) {
		files["llm/inc/"+name] = checkpoints[name]
		_, _ = fmt.Fprintln(z, name)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	files["increments.gz"] = list.Bytes()
	for name, content := range files {
		path := filepath.Join(c.folder, name)
		if err := errorsOf(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c.env = []string{
		"TIDELINE_INDEX=0", "TIDELINE_RUN_ID=run", "TIDELINE_STORE_PATH=" + c.folder, "TIDELINE_STORE_REPORT=llm-merge-store",
		"TIDELINE_INCREMENTS_FILE=" + filepath.Join(c.folder, "increments.gz"), "TIDELINE_INCREMENTS_PATH=llm/inc/",
		"TIDELINE_OUTPUT_PATH=llm/full/run/", "TIDELINE_COMPLETION_MARKER=_SUCCESS",
	}
	return c
}

func TestAveragingProgram(t *testing.T) {
	checkpoints := map[string][]byte{}
	for i, order := range [][]string{{"w", "b", "h", "d", "step"}, {"step", "d", "h", "b", "w"}, {"b", "w", "step", "h", "d"}} {
		x := float64(i + 1)
		checkpoints[fmt.Sprintf("step-%d.safetensors", i)] = safetensors(t, map[string]tensor{
			"w": numbers("F32", x, -x, 1e30, x*x), "b": numbers("BF16", x/2, 1), "h": numbers("F16", x/2), "d": numbers("F64", x/4),
			"step": numbers("I64", 100*x),
		}, order...)
	}
	want := map[string]tensor{
		"w": numbers("F32", 2, -2, 1e30, 14.0/3), "b": numbers("BF16", 1, 1), "h": numbers("F16", 1),
		"d": numbers("F64", 0.5), "step": numbers("I64", 300),
	}
	for name, lines := range map[string][]string{
		"plain Python": {"import average; average.numpy, average.CHUNK = None, 3", "average.main()"},
		"numpy":        {"import average", "assert average.numpy, 'no numpy'", "average.CHUNK = 3", "average.main()"},
	} {
		t.Run(name, func(t *testing.T) {
			c, server := newClaim(t, checkpoints), newAPIServer(t)
			said, err := python(t, server, c.env, lines...)
			if strings.Contains(said, "no numpy") {
				t.Skip("Python has no numpy here")
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			got, metadata := readSafetensors(t, filepath.Join(c.folder, "llm", "full", "run", "model.safetensors"))
			for name, w := range want {
				if is := got[name]; !bytes.Equal(is.data, w.data) || is.DType != w.DType || !slices.Equal(is.Shape, w.Shape) {
					t.Errorf("tensor %s is %+v, want %+v", name, is, w)
				}
			}
			if len(got) != len(want) || metadata["format"] != "pt" || metadata["averaged"] != "3" {
				t.Errorf("there are %d tensors, with metadata %v", len(got), metadata)
			}
			files, err := os.ReadDir(filepath.Join(c.folder, "llm", "full", "run"))
			if err != nil || len(files) != 2 {
				t.Errorf("beside the model and its marker there is something, or less: %v, %v", files, err)
			}
			o := observed(t, server, "run")
			if !o.RunComplete || o.LastFull == nil || time.Since(o.LastFull.Time) > time.Minute {
				t.Errorf("Tideline reads %+v of the report %q", o, server.data)
			}
		})
	}
}

// observed is what Tideline reads of the ConfigMap.
func observed(t *testing.T, server *apiServer, run string) modelstore.Observation {
	t.Helper()
	o, err := modelstore.ObserveReport(modelstore.Policy{}, modelstore.Location{
		Type: modelstore.TypeClaim, Bucket: "checkpoints", Prefix: "llm", Increments: "inc/", Full: "full/", Marker: "_SUCCESS",
	}, server.data, modelstore.Query{Run: run, Most: 100})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestAveragingProgramRefusesWhatDiffers(t *testing.T) {
	file := func(tensors map[string]tensor) []byte {
		return safetensors(t, tensors, slices.Sorted(maps.Keys(tensors))...)
	}
	good := file(map[string]tensor{"w": numbers("F32", 1, 2)})
	short, wide := map[string]tensor{"w": numbers("F32", 1)}, map[string]tensor{"w": numbers("F64", 1, 2)}
	more := map[string]tensor{"w": numbers("F32", 1, 2), "v": numbers("F32", 1)}
	for what, c := range map[string]struct {
		file string
		with []byte
		says string
	}{
		"another shape":   {"b.safetensors", file(short), "b.safetensors as ('F32', [1])"},
		"another type":    {"b.safetensors", file(wide), "b.safetensors as ('F64', [2])"},
		"one tensor more": {"b.safetensors", file(more), "tensor v as None"},
		"a file cut off":  {"b.safetensors", good[:len(good)-1], "b.safetensors is cut off"},
		"another file":    {"b.safetensors", []byte("PK"), "b.safetensors is no safetensors file"},
		"two kinds":       {"b.bin", good, "cannot average files that end with ['.bin', '.safetensors']"},
	} {
		t.Run(what, func(t *testing.T) {
			claim, server := newClaim(t, map[string][]byte{"a.safetensors": good, c.file: c.with}), newAPIServer(t)
			said, err := python(t, server, claim.env, "import average", "average.main()")
			if err == nil || !strings.Contains(said, c.says) {
				t.Errorf("it says %q and ends with %v, want %q", said, err, c.says)
			}
			if _, err := os.Stat(filepath.Join(claim.folder, "llm", "full", "run", "_SUCCESS")); err == nil || len(server.data) > 0 {
				t.Errorf("it reports a model: %v", server.data)
			}
		})
	}
}

func TestReportingProgram(t *testing.T) {
	server := newAPIServer(t)
	const report = `report.append("llm-merge-store", "increments", "step-%d", keep=3)`
	var lines []string
	for _, step := range []int{10, 20, 30, 40, 30} { // the last one after a restart
		lines = append(lines, fmt.Sprintf(report, step))
	}
	if said, err := python(t, server, nil, lines...); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if o := observed(t, server, ""); o.Increments.Count != 3 || o.Increments.First != "step-20" || o.Increments.Last != "step-40" {
		t.Errorf("Tideline reads %+v of %q", o.Increments, server.data)
	}
	began := time.Now()
	if said, err := python(t, server, nil, `report.append("another", "increments", "step-1")`); err == nil ||
		!strings.Contains(said, "403") || time.Since(began) > 5*time.Second {
		t.Errorf("without the right it says %q after %s", said, time.Since(began))
	}
}
