package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// open opens the authority of a directory, as a process of its own would.
func open(t *testing.T, dir string) *ledger.Ledger {
	t.Helper()
	env, _ := gittest.Env(t)
	repo, err := git.Open(t.Context(), git.Options{Dir: dir, Environ: env, Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repo.Close)
	l, err := ledger.Open(repo, ledger.Options{Now: time.Now, Notice: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// void is the simplest thing to append: it adopts where there is no chain.
func void(l *ledger.Ledger) func(ledger.View, *ledger.Draft) error {
	return func(v ledger.View, d *ledger.Draft) error {
		branch, tip := v.Branch, v.Base
		if v.Name != branch.Branch() {
			branch, tip = "", ""
		}
		if err := d.Adopt(context.Background(), branch, tip); err != nil {
			return err
		}
		_, err := d.Add(context.Background(), event.Event{Kind: event.Void, By: event.By{Operation: l.NewID()}})
		return err
	}
}

func TestAppendBeginsAndGrowsAChain(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		for _, local := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/local=%v", format, local), func(t *testing.T) {
				t.Parallel()
				remote := gittest.Remote(t, "--object-format="+format)
				dir := gittest.Clone(t, gittest.URL(remote))
				if local {
					gittest.Git(t, dir, "config", "lease.remote", ".")
					remote = dir
				}
				for i := range 3 {
					l := open(t, dir)
					e, err := l.Append(t.Context(), ledger.Want{}, void(l))
					if err != nil {
						t.Fatal(err)
					}
					if want := uint64(i + 2); e.Seq != want { // after the adopt
						t.Errorf("sequence %d, want %d", e.Seq, want)
					}
					if got := gittest.Git(t, remote, "rev-parse", "refs/lease/main"); got != string(e.OID) {
						t.Errorf("tip %s, want %s", got, e.OID)
					}
					if err := l.Flush(t.Context(), "test"); err != nil {
						t.Fatal(err)
					}
				}
				for ref := range gittest.Refs(t, remote) {
					if strings.Contains(ref, "probe") {
						t.Errorf("the probe left %s", ref)
					}
				}
				gittest.Git(t, remote, "fsck", "--strict")
			})
		}
	}
}

// lastWriterWins makes a server that accepts a push whose expectation no longer
// holds, as some real ones do (docs/design.md): its hook puts every ref back to
// what the push expects.
const lastWriterWins = `#!/bin/sh
unset GIT_QUARANTINE_PATH
while read -r old new ref; do
	case $old in
	*[!0]*) git update-ref "$ref" "$old" ;;
	*) git update-ref -d "$ref" ;;
	esac
done
`

func TestProbe(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(t *testing.T, remote string)
		class   fault.Class
		says    string
		atomic  bool
	}{
		"sound": {prepare: func(*testing.T, string) {}, atomic: true},
		"no atomic": {prepare: func(t *testing.T, remote string) {
			gittest.Git(t, remote, "config", "receive.advertiseAtomic", "false")
		}},
		"last writer wins": {prepare: func(t *testing.T, remote string) {
			gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), lastWriterWins)
		}, class: fault.Unreachable, says: "does not compare and swap"},
		"hidden notes": {prepare: func(t *testing.T, remote string) {
			gittest.Git(t, remote, "config", "receive.hideRefs", "refs/notes/landing")
		}, class: fault.Unreachable, says: "refs/notes/landing/"},
		"hidden leases": {prepare: func(t *testing.T, remote string) {
			gittest.Git(t, remote, "config", "receive.hideRefs", "refs/lease")
		}, class: fault.Unreachable, says: "refs/lease/"},
		"refuses everything": {prepare: func(t *testing.T, remote string) {
			gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), "#!/bin/sh\necho no entry\nexit 1\n")
		}, class: fault.Unreachable, says: "no entry"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := gittest.Remote(t)
			tt.prepare(t, remote)
			l := open(t, gittest.Clone(t, gittest.URL(remote)))
			err := l.Ready(t.Context())
			if fault.ClassOf(err) != tt.class {
				t.Fatalf("got %v", err)
			}
			if tt.class != "" {
				if !strings.Contains(err.Error(), tt.says) {
					t.Errorf("says %q, want %q in it", err, tt.says)
				}
				return
			}
			if atomic, err := l.Atomic(); err != nil || atomic != tt.atomic {
				t.Errorf("atomic %v, %v", atomic, err)
			}
			for ref := range gittest.Refs(t, remote) {
				if strings.Contains(ref, "probe") {
					t.Errorf("the probe left %s", ref)
				}
			}
		})
	}
}

// What the probe found is kept: the next process does not try again.
func TestProbeRunsOnce(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	dir := gittest.Clone(t, gittest.URL(remote))
	if err := open(t, dir).Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), "#!/bin/sh\nexit 1\n")
	if err := open(t, dir).Ready(t.Context()); err != nil {
		t.Errorf("it tried again: %v", err)
	}
}

// grow appends n voids and writes down what was seen.
func grow(t *testing.T, l *ledger.Ledger, n int) {
	t.Helper()
	for range n {
		if _, err := l.Append(t.Context(), ledger.Want{}, void(l)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Flush(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
}

func TestTamperedChainsAreAmbiguous(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, remote string){
		"rewritten": func(t *testing.T, remote string) {
			gittest.Git(t, remote, "update-ref", "refs/lease/main", "refs/lease/main~1")
		},
		"deleted": func(t *testing.T, remote string) {
			gittest.Git(t, remote, "update-ref", "-d", "refs/lease/main")
		},
		"malformed": func(t *testing.T, remote string) {
			oid := gittest.Git(t, remote, "-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-p", "refs/lease/main",
				"-m", "no event", "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
			gittest.Git(t, remote, "update-ref", "refs/lease/main", oid)
		},
		"a branch": func(t *testing.T, remote string) {
			gittest.Git(t, remote, "update-ref", "refs/lease/main", "refs/heads/main")
		},
		"another lease's": func(t *testing.T, remote string) {
			l := open(t, gittest.Clone(t, gittest.URL(remote)))
			if _, err := l.Append(t.Context(), ledger.Want{Name: "other"}, void(l)); err != nil {
				t.Fatal(err)
			}
			gittest.Git(t, remote, "update-ref", "refs/lease/main", "refs/lease/other")
		},
	}
	for name, tamper := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := gittest.Remote(t)
			dir := gittest.Clone(t, gittest.URL(remote))
			grow(t, open(t, dir), 3)
			tamper(t, remote)
			before := gittest.Refs(t, remote)
			l := open(t, dir)
			_, err := l.Append(t.Context(), ledger.Want{}, void(l))
			var f *fault.Error
			if !errors.As(err, &f) || f.Class != fault.Ambiguous {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(f.Hint, "adopt main --over ") {
				t.Errorf("hint %q", f.Hint)
			}
			v, err := l.Fetch(t.Context(), ledger.Want{}) // reading goes on
			if err != nil || v.Base == "" || v.Problem == nil {
				t.Errorf("view %+v, %v", v, err)
			}
			after := gittest.Refs(t, remote)
			if before["refs/lease/main"] != after["refs/lease/main"] {
				t.Error("the chain was written to")
			}
		})
	}
}

// The authority's HEAD can move to another branch between two runs, and the
// branch that it was on can stay.
func TestTargetFollowsTheAuthoritysHead(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	dir := gittest.Clone(t, gittest.URL(remote))
	v, err := open(t, dir).Fetch(t.Context(), ledger.Want{})
	if err != nil || v.Branch != "refs/heads/main" || v.Name != "main" {
		t.Fatalf("%+v, %v", v, err)
	}
	gittest.Commit(t, dir, "on trunk", map[string]string{"x": "x"})
	gittest.Git(t, dir, "push", "-q", "origin", "HEAD:trunk")
	gittest.Git(t, remote, "symbolic-ref", "HEAD", "refs/heads/trunk")
	if v, err = open(t, dir).Fetch(t.Context(), ledger.Want{}); err != nil || v.Branch != "refs/heads/trunk" {
		t.Errorf("%+v, %v", v, err)
	}
	gittest.Git(t, remote, "branch", "-q", "-D", "main")
	gittest.Git(t, remote, "branch", "-q", "-m", "trunk", "main")
	if v, err = open(t, dir).Fetch(t.Context(), ledger.Want{}); err != nil || v.Branch != "refs/heads/main" {
		t.Errorf("%+v, %v", v, err)
	}
}

// Notes are read by git at every level of fan-out that we write, and lines
// that others wrote stay.
func TestNotesAreGits(t *testing.T) {
	t.Parallel()
	dir := gittest.Clone(t, gittest.URL(gittest.Remote(t)))
	l := open(t, dir)
	var tip object.OID
	const notes = 400
	texts := map[object.OID]string{}
	for range 4 { // each on top of the one before, as landings are
		var lines []ledger.NoteLine
		for range notes / 4 {
			on := l.Repo.Format.Hash(object.Blob, fmt.Append(nil, len(texts)))
			texts[on] = fmt.Sprintf("line %d", len(texts))
			lines = append(lines, ledger.NoteLine{On: on, Text: texts[on]})
		}
		d, err := l.AppendNotes(t.Context(), tip, "test", lines)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Repo.Write(t.Context(), d.Objects...); err != nil {
			t.Fatal(err)
		}
		tip = d.Tip
	}
	gittest.Git(t, dir, "update-ref", "refs/notes/test", string(tip))
	if got := strings.Count(gittest.Git(t, dir, "notes", "--ref=test", "list"), "\n") + 1; got != notes {
		t.Errorf("git lists %d notes, want %d", got, notes)
	}
	if flat := strings.Count(gittest.Git(t, dir, "ls-tree", string(tip)), " blob "); flat > 256 {
		t.Errorf("%d notes side by side", flat)
	}
	for on, text := range texts {
		blob, err := l.Note(t.Context(), tip, on)
		if err != nil || string(blob) != text+"\n" {
			t.Fatalf("%q, %v", blob, err)
		}
	}
	gittest.Git(t, dir, "fsck", "--strict")
}

// Two clones publish verifications of one tree at the same time: both lines
// stand in the note, and one that cannot be published waits.
func TestVerificationsAreNeitherLostNorDoubled(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	ctx := t.Context()
	const clones, each = 4, 3
	tree := object.OID(gittest.Git(t, remote, "rev-parse", "main^{tree}"))
	made := func(l *ledger.Ledger, i int) note.Verification {
		return note.Verification{ID: l.NewID(), Check: fmt.Sprintf("check-%d", i), Verdict: note.Pass, Tree: tree,
			Actor: gittest.Identity, Host: "h", Time: time.Now()}
	}
	results := make(chan error)
	for c := range clones {
		l := open(t, gittest.Clone(t, gittest.URL(remote)))
		go func() {
			for i := range each {
				results <- errors.Join(l.Keep(made(l, c*each+i)), l.PublishVerifications(ctx, ledger.Want{}))
			}
		}()
	}
	for range clones * each {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	away := remote + ".away"
	dir := gittest.Clone(t, gittest.URL(remote))
	l := open(t, dir)
	if err := l.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	rename(t, remote, away)
	err := l.Keep(made(l, 99))
	published := l.PublishVerifications(ctx, ledger.Want{})
	if fault.ClassOf(published) != fault.Unreachable || err != nil {
		t.Errorf("while the remote is away: %v, %v", published, err)
	}
	rename(t, away, remote)
	if err := open(t, dir).PublishVerifications(ctx, ledger.Want{}); err != nil {
		t.Error(err)
	}
	if err := open(t, dir).PublishVerifications(ctx, ledger.Want{}); err != nil {
		t.Error(err)
	}
	v, err := l.Fetch(ctx, ledger.Want{})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := l.Verified(ctx, v, tree)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, line := range lines {
		seen[line.Check]++
	}
	if len(lines) != clones*each+1 || len(seen) != clones*each+1 {
		t.Errorf("%d lines of %d checks, want %d", len(lines), len(seen), clones*each+1)
	}
}

// Ctrl-C in the middle of a push leaves nothing that could still arrive: the
// chain has moved past what the push named.
func TestInterruptedPushCannotArrive(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	dir := gittest.Clone(t, gittest.URL(remote))
	l := open(t, dir)
	grow(t, l, 1)
	before := gittest.Git(t, remote, "rev-parse", "refs/lease/main")
	ctx, cancel := context.WithCancel(t.Context())
	hook := filepath.Join(remote, "hooks", "pre-receive")
	mark := filepath.Join(t.TempDir(), "mark")
	ended := mark + ".ended"
	// The first push is held up until its sender is told to stop.
	gittest.Script(t, hook, fmt.Sprintf("#!/bin/sh\nif mkdir '%s' 2>/dev/null; then sleep 2; : >'%s'; fi\nexit 0\n", mark, ended))
	go func() {
		for !exists(mark) {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	e, err := l.Append(ctx, ledger.Want{}, void(l))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("event %v, error %v", e, err)
	}
	tip := gittest.Git(t, remote, "rev-parse", "refs/lease/main")
	if tip == before {
		t.Error("the chain is where the lost push expects it")
	}
	// The dead sender's server goes on, and what it does changes nothing.
	for !exists(ended) {
		time.Sleep(10 * time.Millisecond)
	}
	gittest.Git(t, dir, "ls-remote", "origin")
	if got := gittest.Git(t, remote, "rev-parse", "refs/lease/main"); got != tip {
		t.Errorf("the chain moved from %s to %s", tip, got)
	}
}
