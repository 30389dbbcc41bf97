package modelstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/merging"
)

// noon is when what tests write was written, or minutes before or after it.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// directory is a store in a directory.
type directory struct {
	t        *testing.T
	policy   Policy
	location Location
}

func newDirectory(t *testing.T) directory {
	root, err := filepath.EvalSymlinks(t.TempDir())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return directory{t: t, policy: Policy{LocalDirectory: root}, location: Location{
		Type: TypeFile, Bucket: root, Prefix: "ctr", Increments: "inc", Full: "full/", Marker: "_SUCCESS",
	}}
}

// write makes a file under the model's prefix, as written some minutes after noon.
func (d directory) write(key string, minutes int) {
	d.t.Helper()
	g := NewWithT(d.t)
	path := filepath.Join(d.location.Bucket, d.location.Prefix, key)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	at := noon.Add(time.Duration(minutes) * time.Minute)
	g.Expect(os.Chtimes(path, at, at)).To(Succeed())
}

// full makes a full model, complete some minutes after noon.
func (d directory) full(name string, minutes int) {
	d.t.Helper()
	d.write("full/"+name+"/shard-0", minutes)
	d.write("full/"+name+"/_SUCCESS", minutes)
}

func (d directory) observe(q Query) Observation {
	d.t.Helper()
	o, err := ObserveStore(d.t.Context(), d.policy, d.location, Credentials{}, q)
	NewWithT(d.t).Expect(err).NotTo(HaveOccurred())
	return o
}

// listed are the names in a list.
func listed(t *testing.T, list []byte) []string {
	t.Helper()
	g := NewWithT(t)
	if list == nil {
		return nil
	}
	r, err := gzip.NewReader(bytes.NewReader(list))
	g.Expect(err).NotTo(HaveOccurred())
	names, err := io.ReadAll(r)
	g.Expect(err).NotTo(HaveOccurred())
	return strings.Split(strings.TrimSuffix(string(names), "\n"), "\n")
}

func TestObserveNothing(t *testing.T) {
	g := NewWithT(t)
	d := newDirectory(t)
	g.Expect(d.observe(Query{Run: "r", Known: "k", After: "a", Most: 5})).To(Equal(Observation{}))
	g.Expect(os.ReadDir(d.location.Bucket)).To(BeEmpty(), "nothing is written")
}

func TestLastFull(t *testing.T) {
	for _, c := range []struct {
		name   string
		fulls  map[string]int // when full models were written
		files  map[string]int // and other objects
		query  Query
		want   *merging.Full
		run    bool
		hollow string
	}{
		{name: "the newest marker, whatever the names",
			fulls: map[string]int{"b": 1, "a": 2, "c": 0},
			want:  &merging.Full{Name: "a", Time: noon.Add(2 * time.Minute)}},
		{name: "of one moment the later name",
			fulls: map[string]int{"b": 1, "c": 1, "a": 1},
			want:  &merging.Full{Name: "c", Time: noon.Add(time.Minute)}},
		{name: "what an earlier run made is no newer than what is known, whatever clocks say",
			fulls: map[string]int{"first": 60, "second": 1, "third": 2},
			query: Query{Known: "third", Earlier: []string{"second", "first"}},
			want:  &merging.Full{Name: "third", Time: noon.Add(2 * time.Minute)}},
		{name: "nor than what somebody else made after what is known",
			fulls: map[string]int{"first": 60, "third": 2, "foreign": 3},
			query: Query{Known: "third", Earlier: []string{"first"}},
			want:  &merging.Full{Name: "foreign", Time: noon.Add(3 * time.Minute)}},
		{name: "but it is the newest once what is known was deleted",
			fulls: map[string]int{"first": 60, "second": 1},
			query: Query{Known: "third", Earlier: []string{"second", "first"}},
			want:  &merging.Full{Name: "first", Time: noon.Add(60 * time.Minute)}},
		{name: "without a marker it is not complete",
			fulls: map[string]int{"a": 1},
			files: map[string]int{"full/b/shard-0": 2, "full/b/sub/_SUCCESS": 2, "full/_SUCCESS": 3, "full/b/_SUCCESS2": 3},
			want:  &merging.Full{Name: "a", Time: noon.Add(time.Minute)}},
		{name: "a run without a marker is not complete",
			files: map[string]int{"full/r/shard-0": 1}, query: Query{Run: "r"}},
		{name: "a run is complete",
			fulls: map[string]int{"r": 1}, query: Query{Run: "r"}, want: &merging.Full{Name: "r", Time: noon.Add(time.Minute)}, run: true},
		{name: "a run is complete, but somebody's model is newer",
			fulls: map[string]int{"r": 1, "a": 2}, query: Query{Run: "r"},
			want: &merging.Full{Name: "a", Time: noon.Add(2 * time.Minute)}, run: true},
		{name: "a marker alone is no full model",
			fulls: map[string]int{"a": 1}, files: map[string]int{"full/b/_SUCCESS": 3, "full/c/_SUCCESS": 2},
			want: &merging.Full{Name: "a", Time: noon.Add(time.Minute)}, hollow: "b"},
		{name: "a run with nothing but a marker is not complete",
			files: map[string]int{"full/r/_SUCCESS": 1}, query: Query{Run: "r"}, hollow: "r"},
		{name: "an old marker alone is of no interest",
			fulls: map[string]int{"a": 3}, files: map[string]int{"full/b/_SUCCESS": 2},
			want: &merging.Full{Name: "a", Time: noon.Add(3 * time.Minute)}},
		{name: "names that lead elsewhere are not looked for",
			files: map[string]int{"full/a/b/_SUCCESS": 1, "_SUCCESS": 1, "full/_SUCCESS": 1}, query: Query{Run: "..", Known: "a/b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			d := newDirectory(t)
			for key, minutes := range c.files {
				d.write(key, minutes)
			}
			for name, minutes := range c.fulls {
				d.full(name, minutes)
			}
			o := d.observe(c.query)
			if c.want == nil {
				g.Expect(o.LastFull).To(BeNil())
			} else {
				g.Expect(o.LastFull).To(HaveValue(And(HaveField("Name", c.want.Name), HaveField("Time", BeTemporally("==", c.want.Time)))))
			}
			g.Expect(o.RunComplete).To(Equal(c.run))
			g.Expect(o.Hollow).To(Equal(c.hollow))
		})
	}
}

func TestManyFullModels(t *testing.T) {
	g := NewWithT(t)
	d := newDirectory(t)
	for i := range 200 {
		d.write(fmt.Sprintf("full/m%03d/shard", i), 0)
	}
	d.full("m100", 5)
	d.full("m136", 1)
	g.Expect(d.observe(Query{}).LastFull).To(HaveValue(HaveField("Name", "m136")), "the first of the last 64")
	g.Expect(d.observe(Query{Known: "m100"}).LastFull).To(HaveValue(HaveField("Name", "m100")), "it is on record")
	o := d.observe(Query{Run: "m100"})
	g.Expect(o.LastFull).To(HaveValue(HaveField("Name", "m100")))
	g.Expect(o.RunComplete).To(BeTrue())
}

func TestIncrements(t *testing.T) {
	run := merging.RunID(noon, "a")
	for _, c := range []struct {
		name  string
		full  string // name of a full model whose marker is of two minutes after noon
		files map[string]int
		query Query
		want  []string
		count int
		after int // minutes after noon when the newest was written
	}{
		{name: "all, without a full model",
			files: map[string]int{"inc/b": -1, "inc/a": 3, "inc/c": 1, "other/d": 9, "inc2/e": 9, "x": 9},
			query: Query{Known: "gone", After: "b", Most: 9}, want: []string{"a", "b", "c"}, count: 3, after: 3},
		{name: "in the order of keys, over folders",
			files: map[string]int{"inc/a/1": 0, "inc/a-b": 0, "inc/a/2": 0, "inc/a.b": 0}, query: Query{Most: 9},
			want: []string{"a-b", "a.b", "a/1", "a/2"}, count: 4},
		{name: "counted beyond the most that are listed",
			files: map[string]int{"inc/a": 0, "inc/b": 0, "inc/c": 7}, query: Query{Most: 2},
			want: []string{"a", "b"}, count: 3, after: 7},
		{name: "counted only",
			files: map[string]int{"inc/a": 0}, count: 1},
		{name: "after the last merged one, whenever they were written", full: "k",
			files: map[string]int{"inc/a": 9, "inc/b": 9, "inc/c": -9, "inc/b2": -8}, query: Query{Known: "k", After: "b", Most: 9},
			want: []string{"b2", "c"}, count: 2, after: -8},
		{name: "none after the last merged one", full: "k",
			files: map[string]int{"inc/a": 9}, query: Query{Known: "k", After: "a", Most: 9}},
		{name: "somebody else's full model: since its marker", full: "k",
			files: map[string]int{"inc/a": 1, "inc/b": 2, "inc/c": 3}, query: Query{Known: "other", After: "z", Most: 9},
			want: []string{"b", "c"}, count: 2, after: 3},
		{name: "a run of ours off the record: since its start", full: run,
			files: map[string]int{"inc/a": -1, "inc/b": 0, "inc/c": 1}, query: Query{Most: 9},
			want: []string{"b", "c"}, count: 2, after: 1},
		{name: "known, but not by which increment", full: run,
			files: map[string]int{"inc/a": -1, "inc/b": 0, "inc/c": 1}, query: Query{Known: run, Most: 9},
			want: []string{"b", "c"}, count: 2, after: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			d := newDirectory(t)
			for key, minutes := range c.files {
				d.write(key, minutes)
			}
			if c.full != "" {
				d.full(c.full, 2)
			}
			inc := d.observe(c.query).Increments
			g.Expect(listed(t, inc.List)).To(Equal(c.want))
			g.Expect(inc.Listed).To(Equal(len(c.want)))
			g.Expect(inc.Count).To(Equal(c.count))
			if c.count == 0 {
				g.Expect(inc.NewestTime).To(BeZero())
			} else {
				g.Expect(inc.NewestTime).To(BeTemporally("==", noon.Add(time.Duration(c.after)*time.Minute)))
			}
			if len(c.want) > 0 {
				g.Expect(inc.First).To(Equal(c.want[0]))
				g.Expect(inc.Last).To(Equal(c.want[len(c.want)-1]))
			} else {
				g.Expect(inc.First + inc.Last).To(BeEmpty())
			}
		})
	}
}

func TestLineBreakInAName(t *testing.T) {
	g := NewWithT(t)
	d := newDirectory(t)
	d.write("inc/a\nb", 0)
	_, err := ObserveStore(t.Context(), d.policy, d.location, Credentials{}, Query{Most: 1})
	g.Expect(reasonOf(err)).To(Equal(Invalid))
	g.Expect(err).To(MatchError(`the increment "a b" has a line break in its name: rename it`))
}

func TestListsFit(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 2))
	var names []string
	for range 500 {
		name := make([]byte, 200)
		for i := range name {
			name[i] = byte('a' + random.IntN(26))
		}
		names = append(names, string(name))
	}
	all, n := firstFitting(names, mostListBytes)
	g.Expect(n).To(Equal(len(names)))
	g.Expect(len(all)).To(BeNumerically("<", mostListBytes))

	some, n := firstFitting(names, 20_000)
	g.Expect(len(some)).To(BeNumerically("<=", 20_000))
	g.Expect(listed(t, some)).To(Equal(names[:n]))
	g.Expect(len(gzipNames(names[:n+1]))).To(BeNumerically(">", 20_000), "not one more fits")
	again, _ := firstFitting(names, 20_000)
	g.Expect(again).To(Equal(some), "the same names make the same bytes")

	none, n := firstFitting(names, 10)
	g.Expect(n).To(BeZero())
	g.Expect(none).To(BeNil())
}

func TestObserveCancelled(t *testing.T) {
	g := NewWithT(t)
	d := newDirectory(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ObserveStore(ctx, d.policy, d.location, Credentials{}, Query{})
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(reasonOf(err)).NotTo(Equal(Unreachable), "the store is not to blame")
}

// A folder that cannot be read is no empty one: without a full model a merge would be due at once.
func TestFoldersThatCannotBeRead(t *testing.T) {
	for _, path := range []string{"inc", "full", "full/m1/_SUCCESS"} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			d := newDirectory(t)
			d.write("full/m1/shard", 0)
			link := filepath.Join(d.location.Bucket, "ctr", path)
			g.Expect(os.RemoveAll(link)).To(Succeed())
			g.Expect(os.Symlink(link, link)).To(Succeed(), "a link to itself, because tests may run as root")
			_, err := ObserveStore(t.Context(), d.policy, d.location, Credentials{}, Query{})
			g.Expect(reasonOf(err)).To(Equal(Unreachable))
		})
	}
}

func TestFoldersThatMayNotBeRead(t *testing.T) {
	g := NewWithT(t)
	err := explainFailure(t.Context(), fmt.Errorf("open: %w", os.ErrPermission), Location{Type: TypeFile, Bucket: "/a"})
	g.Expect(reasonOf(err)).To(Equal(Forbidden))
	g.Expect(err).To(MatchError(`the operator may not read the directory "/a": change its permissions`))
}

func TestObserveAsksThePolicy(t *testing.T) {
	g := NewWithT(t)
	d := newDirectory(t)
	_, err := ObserveStore(t.Context(), Policy{}, d.location, Credentials{}, Query{})
	g.Expect(reasonOf(err)).To(Equal(StoreTypeNotAllowed))
	d.location.Bucket += "/gone"
	_, err = ObserveStore(t.Context(), d.policy, d.location, Credentials{}, Query{})
	g.Expect(reasonOf(err)).To(Equal(BucketNotFound))
}
