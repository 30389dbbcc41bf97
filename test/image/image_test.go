// Package image holds the Dockerfile to what it promises, without a container engine: it runs the Dockerfile's own build on
// the files that the Dockerfile copies. It takes minutes, because one build has an empty cache. It runs by `make test-install`.
package image

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

// The stamps that the builds get.
const (
	version = "v1.2.3"
	commit  = "0123456789abcdef0123456789abcdef01234567"
	date    = "2026-01-02T03:04:05Z"
)

var platforms = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// dockerfile is the Dockerfile with its continued lines joined.
func dockerfile(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(content), "\\\n", "")
}

// instructions are the arguments of all instructions of a kind.
func instructions(t *testing.T, kind string) []string {
	t.Helper()
	var found []string
	for _, line := range regexp.MustCompile(`(?m)^`+kind+` +(.*)$`).FindAllStringSubmatch(dockerfile(t), -1) {
		found = append(found, line[1])
	}
	if len(found) == 0 {
		t.Fatalf("the Dockerfile has no %s", kind)
	}
	return found
}

// copied are the names in each COPY from the repository: where from, and last where to. An engine has no file that .dockerignore
// does not admit.
func copied(t *testing.T) [][]string {
	t.Helper()
	ignored := string(read(t, filepath.Join(repository, ".dockerignore")))
	admitted := regexp.MustCompile(`(?m)^!(.*)$`).FindAllStringSubmatch(ignored, -1)
	var all [][]string
	for _, arguments := range instructions(t, "COPY") {
		if strings.HasPrefix(arguments, "--from") {
			continue
		}
		names := strings.Fields(arguments)
		for _, name := range names[:len(names)-1] {
			if !slices.ContainsFunc(admitted, func(line []string) bool { return strings.HasPrefix(name+"/", line[1]+"/") }) {
				t.Fatalf("COPY %s: .dockerignore does not admit %s", arguments, name)
			}
		}
		all = append(all, names)
	}
	return all
}

func TestDockerignoreAdmitsWhatIsCopied(t *testing.T) {
	if len(copied(t)) == 0 {
		t.Error("the Dockerfile copies nothing of the repository")
	}
}

// build runs the Dockerfile's build in a folder of its own, and returns the path of the program.
func build(t *testing.T, arch string, env ...string) string {
	t.Helper()
	source, out := t.TempDir(), t.TempDir()
	for _, names := range copied(t) {
		to := filepath.Join(source, names[len(names)-1])
		for _, name := range names[:len(names)-1] {
			copyFiles(t, filepath.Join(repository, name), to)
		}
	}
	runs := instructions(t, "RUN")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(runs[len(runs)-1], "-o /out/", "-o "+out+"/"))
	cmd.Dir = source
	cmd.Env = append(os.Environ(), append(env, "TARGETOS=linux", "TARGETARCH="+arch,
		"VERSION="+version, "COMMIT="+commit, "DATE="+date)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, said)
	}
	return filepath.Join(out, "tideline")
}

// copyFiles copies a file into a folder, or what is in a folder, without tests, which .dockerignore leaves out.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if !info.IsDir() {
		to = filepath.Join(to, filepath.Base(from))
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		switch {
		case entry.IsDir():
			copyFiles(t, filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name()))
		case !strings.HasSuffix(entry.Name(), "_test.go"):
			copyFiles(t, filepath.Join(from, entry.Name()), to)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Two people who build the same commit get the same program, wherever their clones are and whatever is in their caches. An empty
// cache costs minutes, so only one of the platforms, this machine's own where it is among them, gets one.
func TestBuildIsReproducible(t *testing.T) {
	slow := "amd64"
	if _, known := platforms[runtime.GOARCH]; known {
		slow = runtime.GOARCH
	}
	for arch, machine := range platforms {
		t.Run(arch, func(t *testing.T) {
			var env []string
			if arch == slow {
				env = append(env, "GOCACHE="+t.TempDir())
			}
			first, second := build(t, arch), build(t, arch, env...)
			if a, b := sha256.Sum256(read(t, first)), sha256.Sum256(read(t, second)); a != b {
				t.Errorf("one build is %x, the other %x: %s", a, b, difference(t, first, second))
			}
			checkStatic(t, first, machine)
			checkStamps(t, first, arch)
		})
	}
}

// difference says where two programs begin to differ.
func difference(t *testing.T, a, b string) string {
	t.Helper()
	x, y := read(t, a), read(t, b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			from, to := max(0, i-60), min(i+60, len(x), len(y))
			return strings.ToValidUTF8(string(x[from:to]), ".") + " and " + strings.ToValidUTF8(string(y[from:to]), ".")
		}
	}
	return "one is longer"
}

// The image has no loader and no libraries.
func checkStatic(t *testing.T, program string, machine elf.Machine) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if file.Machine != machine {
		t.Errorf("it is for %s, want %s", file.Machine, machine)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %s: it is linked to libraries", segment.Type)
		}
	}
}

// checkStamps holds a program to the stamps, as it says them itself where this machine can run it.
func checkStamps(t *testing.T, program, arch string) {
	t.Helper()
	if runtime.GOOS != "linux" || arch != runtime.GOARCH {
		for _, stamp := range []string{version, commit, date} {
			if !bytes.Contains(read(t, program), []byte(stamp)) {
				t.Errorf("it does not have %s", stamp)
			}
		}
		return
	}
	said, err := exec.CommandContext(t.Context(), program, "version").Output()
	want := "tideline " + version + " (commit " + commit + " of " + date + "; " + runtime.Version() + " linux/" + arch + ")\n"
	if err != nil || string(said) != want {
		t.Errorf("`tideline version` says %q (%v), want %q", said, err, want)
	}
}

// The manifests expect an image that does not run as root. The exact Go makes the same program; the base is by a tag, so that its
// CA certificates are of today.
func TestImageIsNonRootAndOfExactGo(t *testing.T) {
	if user := instructions(t, "USER"); !slices.Equal(user, []string{"65532:65532"}) {
		t.Errorf("it runs as %s", user)
	}
	args := instructions(t, "ARG")
	release, _, _ := strings.Cut(strings.TrimPrefix(runtime.Version(), "go1."), ".")
	if exact := regexp.MustCompile(`^GO_VERSION=1\.` + release + `\.\d+$`); !slices.ContainsFunc(args, exact.MatchString) {
		t.Errorf("it is not built by an exact version of the release of %s, which tests it: %s", runtime.Version(), args)
	}
	if !slices.Contains(args, "BASE=gcr.io/distroless/static:nonroot") {
		t.Errorf("it is built on another base: %s", args)
	}
}

// The bill has every module of the program and nothing that changes from build to build.
func TestBillOfMaterials(t *testing.T) {
	bin := t.TempDir()
	write := func() []byte {
		cmd := exec.CommandContext(t.Context(), "make", "-s", "-C", repository, "sbom", "BIN="+bin, "VERSION="+version)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, said)
		}
		return read(t, filepath.Join(bin, "tideline.cdx.json"))
	}
	first := write()
	if second := write(); !bytes.Equal(first, second) {
		t.Errorf("the second bill is another:\n%s\n%s", first, second)
	}
	type component struct{ Name, Version, Purl string }
	var bill struct {
		BOMFormat, SpecVersion string
		Metadata               struct{ Component component }
		Components             []component
	}
	if err := json.Unmarshal(first, &bill); err != nil {
		t.Fatal(err)
	}
	const path = "github.com/tideline-io/tideline"
	program := component{path, version, "pkg:golang/" + path + "@" + version}
	if bill.BOMFormat != "CycloneDX" || bill.Metadata.Component != program {
		t.Errorf("it is %s %s of %+v", bill.BOMFormat, bill.SpecVersion, bill.Metadata.Component)
	}
	info, err := buildinfo.ReadFile(filepath.Join(bin, "tideline"))
	if err != nil {
		t.Fatal(err)
	}
	release := strings.TrimPrefix(info.GoVersion, "go")
	want := []component{{"std", release, "pkg:golang/std@" + release}}
	for _, module := range info.Deps {
		want = append(want, component{module.Path, module.Version, "pkg:golang/" + module.Path + "@" + module.Version})
	}
	if len(want) < 50 || !slices.Equal(bill.Components, want) {
		t.Errorf("it lists\n%v\nwant\n%v", bill.Components, want)
	}
}
