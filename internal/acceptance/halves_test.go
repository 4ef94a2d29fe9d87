package acceptance

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// A half is what a server leaves that is killed between two refs of a landing's
// transaction. It moves them in the order in which they are sent: those that are
// there already by their names, and then the new ones.
type half struct {
	name  string
	first bool     // the first landing: chain and records do not exist
	moved []string // refs
	code  string   // what reconcile calls it; nothing where there is no chain to compare with
	upon  string   // and with another landing upon it
}

var halves = []half{
	{name: "branch", moved: []string{"refs/heads/main"}, code: "commit-without-record", upon: "commit-without-record"},
	{name: "branch and chain", moved: []string{"refs/heads/main", "refs/lease/main"}, code: "event-without-record", upon: "event-without-record"},
	{name: "branch first", first: true, moved: []string{"refs/heads/main"}},
	{name: "branch and chain first", first: true, moved: []string{"refs/heads/main", "refs/lease/main"}, code: "event-without-record", upon: "event-without-record"},
}

// A server dies between two refs, and with it the landing. Another clone may land
// on top before anybody comes back. Reconcile names what is missing, resume adds
// it, and the story is one.
func TestServerKilledBetweenTwoRefs(t *testing.T) {
	t.Parallel()
	for _, h := range halves {
		for _, upon := range []bool{false, true} {
			name := strings.ReplaceAll(h.name, " ", "-")
			if upon {
				name += "-and-another-upon-it"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				halfLanded(t, h, upon)
			})
		}
	}
}

// A server moves refs in the order in which they are sent: the record last, since
// records without a chain are what a deleted chain looks like.
func TestTheRecordIsSentLast(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	sent := filepath.Join(t.TempDir(), "sent")
	for _, name := range []string{"one", "two"} {
		s.write(map[string]string{name: name + "\n"})
		gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), "#!/bin/sh\ncat >'"+sent+"'\n")
		s.landUnit(name)
		var refs []string
		for line := range strings.Lines(read(t, sent)) {
			refs = append(refs, strings.Fields(line)[2])
		}
		if want := []string{"refs/heads/main", "refs/lease/main", "refs/notes/landing/main"}; !slices.Equal(refs, want) {
			t.Errorf("%s: sent %q, want %q", name, refs, want)
		}
	}
}

func halfLanded(t *testing.T, h half, upon bool) {
	t.Helper()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	n := 1
	if !h.first {
		other.write(map[string]string{"begin": "b\n"})
		other.landUnit("begin")
		n++
	}
	s.write(map[string]string{"half": "h\n"})
	s.dies(remote, "pre-receive", "--unit", "half", "--", "half")
	var refspecs []string
	for _, ref := range h.moved {
		refspecs = append(refspecs, s.planned(ref)+":"+ref)
	}
	s.git(append([]string{"push", "-q", "--no-verify", "origin"}, refspecs...)...)
	code := h.code
	if upon {
		code = h.upon
		other.write(map[string]string{"upon": "u\n"})
		other.landUnit("upon")
		n++
	}
	if code != "" {
		if r := other.exits(7, "git-land", "reconcile", "--json"); !strings.Contains(r.Stdout, `"`+code+`"`) {
			t.Errorf("reconcile: %s", r.Stdout)
		}
	}
	commit := s.planned("refs/heads/main")
	if r := s.exits(0, "git-land", "resume"); !strings.Contains(r.Stdout, "finished it") {
		t.Errorf("resume: %s%s", r.Stdout, r.Stderr)
	}
	r := other.exits(0, "git-land", "reconcile")
	if got := gittest.Git(t, remote, "rev-list", "--count", "main"); got != map[int]string{1: "2", 2: "3", 3: "4"}[n] {
		t.Errorf("%s commits on main after %d landings\n%s", got, n, r.Stdout)
	}
	events := gittest.Git(t, remote, "log", "--format=%(trailers:key=Landing-Commit,valueonly,separator=)", "refs/lease/main")
	if got := strings.Count(events, commit); got != 1 {
		t.Errorf("%d events of the landing", got)
	}
	if note := gittest.Git(t, remote, "notes", "--ref=landing/main", "show", commit); strings.Count(note, `"id"`) != 1 {
		t.Errorf("record: %s", note)
	}
	if got := s.git("status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
}

// planned is where the last push of a dead landing of the clone wanted a ref.
func (s seat) planned(ref string) string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, ".git/lease/journal/*.json"))
	if err != nil || len(files) != 1 {
		s.t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		s.t.Fatal(err)
	}
	var j struct {
		Attempts []struct {
			Moves []struct{ Ref, New string } `json:"moves"`
		} `json:"attempts"`
	}
	if err := json.Unmarshal(text, &j); err != nil || len(j.Attempts) == 0 {
		s.t.Fatal(string(text), err)
	}
	to := map[string]string{}
	for _, m := range j.Attempts[len(j.Attempts)-1].Moves {
		to[m.Ref] = m.New
	}
	if to[ref] == "" {
		s.t.Fatalf("the landing moves %q", slices.Sorted(maps.Keys(to)))
	}
	return to[ref]
}
