package session_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/session"
)

func TestStore(t *testing.T) {
	t.Parallel()
	d := session.Open(t.TempDir())
	for name, store := range map[string]session.Store{"journal": d.Journal(), "outbox": d.Outbox()} {
		t.Run(name, func(t *testing.T) {
			first, second := session.NewID(time.UnixMilli(1)), session.NewID(time.UnixMilli(2))
			for _, id := range []ulid.ULID{second, first, second} {
				if err := store.Write(id, entry{7, id.String()}); err != nil {
					t.Fatal(err)
				}
			}
			var got entry
			if err := store.Load(first, &got); err != nil || got != (entry{7, first.String()}) {
				t.Errorf("got %+v, %v", got, err)
			}
			// What others left there is not listed.
			for _, stray := range []string{"x.json", first.String() + ".json.123.tmp", strings.ToLower(first.String()) + ".json", ".json"} {
				if err := os.WriteFile(filepath.Join(filepath.Dir(store.Path(first)), stray), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if ids, err := store.List(); err != nil || !slices.Equal(ids, []ulid.ULID{first, second}) {
				t.Errorf("got %v, %v, want %v", ids, err, []ulid.ULID{first, second})
			}
			for range 2 {
				if err := store.Remove(first); err != nil {
					t.Error(err)
				}
			}
			if err := store.Load(first, &got); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v, want fs.ErrNotExist", err)
			}
		})
	}
}

func TestStoreNamesBadFiles(t *testing.T) {
	t.Parallel()
	d := session.Open(t.TempDir())
	id := session.NewID(time.Now())
	path := d.Journal().Path(id)
	big := strings.Repeat("x", 64<<20)
	if err := d.Journal().Write(id, big); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("too big: got %v", err)
	}
	if err := d.Journal().Write(id, func() {}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no JSON: got %v", err)
	}
	if _, err := os.Lstat(d.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused write left something: %v", err)
	}
	if err := d.Journal().Write(id, "x"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty": "", "half": `{"N":1`, "two": "{} {}", "big": `"` + big + `"`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var v any
		if err := d.Journal().Load(id, &v); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want an error that names %s", name, err, path)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	d := session.Open(t.TempDir())
	const url = "https://user:password@host/repo.git"
	var got string
	if err := d.LoadProbe(url, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
	if err := d.SaveProbe(url, "good"); err != nil {
		t.Fatal(err)
	}
	if err := d.LoadProbe(url, &got); err != nil || got != "good" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := d.LoadProbe(url+"/", &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another url: got %v, want fs.ErrNotExist", err)
	}
	for _, path := range tree(t, d.Path()) {
		if strings.Contains(path, "password") {
			t.Errorf("%s has the url in its name", path)
		}
	}
}

// tree lists all paths below dir, dir included, or nothing if it is not there.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return paths
}

func TestModesWhateverTheUmask(t *testing.T) {
	t.Parallel()
	for _, umask := range []string{"000", "022", "077", "277", "777"} {
		t.Run(umask, func(t *testing.T) {
			t.Parallel()
			common := t.TempDir()
			p := play(t, "all", nil, common, umask)
			p.begin()
			p.end(t)
			paths := tree(t, filepath.Join(common, "lease"))
			if len(paths) != 17 {
				t.Errorf("got %d files and directories: %q", len(paths), paths)
			}
			for _, path := range paths {
				info, err := os.Lstat(path)
				if err != nil {
					t.Fatal(err)
				}
				want := fs.FileMode(0o600)
				if info.IsDir() {
					want = 0o700
				}
				if got := info.Mode().Perm(); got != want {
					t.Errorf("%s has mode %o, want %o", path, got, want)
				}
			}
		})
	}
}

// A write that was acknowledged is there after the writer is killed, and the
// file is whole whenever it is read and however the kill fell.
func TestKilledWriterLeavesWholeFile(t *testing.T) {
	t.Parallel()
	d := session.Open(t.TempDir())
	id := session.NewID(time.Now())
	for round := range 5 {
		p := play(t, "writes", nil, filepath.Dir(d.Path()), id.String(), "1000000")
		p.begin()
		var last string
		for range 20 + 7*round {
			last = p.line(t)
		}
		var got entry
		for range 400 {
			if err := d.Journal().Load(id, &got); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for p.out.Scan() {
			last = p.out.Text()
		}
		acknowledged, err := strconv.Atoi(last)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Journal().Load(id, &got); err != nil {
			t.Fatal(err)
		}
		if got.N < acknowledged || got.N > acknowledged+1 || len(got.Text) != got.N%5000 {
			t.Errorf("got %d with %d bytes, acknowledged was %d", got.N, len(got.Text), acknowledged)
		}
	}
}

// Every landing waits for this: a file and its directory are synced, once each.
func TestWriteSyncsTwice(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	calls := func(writes int) map[string]int {
		common := t.TempDir()
		trace := filepath.Join(t.TempDir(), "trace")
		cmd := exec.Command(strace, "-f", "-o", trace, "-e", "trace=fsync,fdatasync,sync,syncfs,rename,renameat,renameat2,mkdirat,mkdir",
			os.Args[0], common, session.NewID(time.Now()).String(), fmt.Sprint(writes))
		cmd.Env = append(os.Environ(), roleVar+"=writes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, call := range regexp.MustCompile(`(?m)^\d+ +(sync|mkdir|rename|\w*sync\w*)(?:at2?)?\(`).FindAllStringSubmatch(string(text), -1) {
			counts[call[1]]++
		}
		return counts
	}
	one, four := calls(1), calls(4)
	if one["mkdir"] == 0 {
		t.Errorf("the trace shows no directory being made: %v", one)
	}
	for call, want := range map[string]int{"fsync": 6, "fdatasync": 0, "sync": 0, "rename": 3, "mkdir": 0} {
		if got := four[call] - one[call]; got != want {
			t.Errorf("three more writes: got %d of %s, want %d", got, call, want)
		}
	}
}

func TestReadingCreatesNothing(t *testing.T) {
	t.Parallel()
	common := t.TempDir()
	d := session.Open(common)
	source, err := namedSession(d)
	if err != nil {
		t.Fatal(err)
	}
	id := session.NewID(time.Now())
	note := session.HoldNote{Remote: ".", Name: "main", Operation: id}
	var v any
	for name, err := range map[string]error{
		"load": second(source.Load()), "note": source.Note(note), "forget": source.Forget(note),
	} {
		if !errors.Is(err, session.ErrNoToken) {
			t.Errorf("%s: got %v, want ErrNoToken", name, err)
		}
	}
	for name, err := range map[string]error{"journal": d.Journal().Load(id, &v), "probe": d.LoadProbe("url", &v)} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want fs.ErrNotExist", name, err)
		}
	}
	if alive, err := d.Alive(id); alive || !errors.Is(err, session.ErrNoWitness) {
		t.Errorf("alive: got %v, %v, want ErrNoWitness", alive, err)
	}
	if ids, err := d.Outbox().List(); ids != nil || err != nil {
		t.Errorf("list: got %v, %v", ids, err)
	}
	if e, err := d.Evidence(id); err != nil || e.Record != nil || e.Witness != session.NoWitness {
		t.Errorf("evidence: got %+v, %v", e, err)
	}
	if err := errors.Join(d.Forget(id, session.LeaseAt{Remote: "origin", Lease: "main"}), d.Sweep(session.LeaseAt{Remote: "origin", Lease: "main"}, id)); err != nil || d.Recorded(id) {
		t.Errorf("forget and sweep: %v", err)
	}
	if err := d.Journal().Remove(id); err != nil {
		t.Errorf("remove: %v", err)
	}
	if paths := tree(t, common); len(paths) != 1 {
		t.Errorf("created %q", paths)
	}
}

func second[T any](_ T, err error) error { return err }

// A repository that was removed under a running command stays removed.
func TestRemovedRepositoryStaysRemoved(t *testing.T) {
	t.Parallel()
	common := filepath.Join(t.TempDir(), "repo", ".git")
	d := session.Open(common)
	id := session.NewID(time.Now())
	source, err := namedSession(d)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"journal": d.Journal().Write(id, 1), "witness": second(d.Witness(id)), "ensure": second(source.Ensure()),
		"lock": second(session.Lock(t.Context(), d.Path("mirror", "x"))),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want fs.ErrNotExist", name, err)
		}
	}
	if paths := tree(t, filepath.Dir(common)); len(paths) > 1 {
		t.Errorf("created %q", paths)
	}
}
