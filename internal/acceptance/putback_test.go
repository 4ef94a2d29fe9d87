package acceptance

import (
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// A chain that was deleted, or put back to an older event, is given back by a push
// that loses nothing, and that is what every hint names first: in each clone what that
// has seen, with the number up to which it has.
func TestHintOfALostChainPutsItBack(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string][]string{
		"deleted":  {"update-ref", "-d", "refs/lease/main"},
		"put back": {"update-ref", "refs/lease/main", "refs/lease/main~2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthor(t, gittest.Remote(t))
			a.lands()
			a.lands()
			less := clone(t, a.remote)
			less.exits(0, "git-lease", "show")
			a.lands()
			a.view()
			a.ok(a.l.Flush(t.Context(), "test"))
			tip := gittest.Git(t, a.remote, "rev-parse", "refs/lease/main")
			a.remoteGit(lose...)
			const push, over = "git push origin refs/lease-remote/origin/seen/main:refs/lease/main", "git lease adopt main --over "
			for s, upTo := range map[*seat]string{&less: "up to event 3", &a.s: "up to event 4"} {
				for _, r := range []gittest.Result{s.exits(0, "git-lease"), s.try("git-land", "reconcile"), s.try("git-lease", "acquire"), s.exits(0, "git-land", "status")} {
					out := r.Stdout + r.Stderr
					i, j := strings.Index(out, push), strings.Index(out, over)
					if i < 0 || j < i || !strings.Contains(out, upTo) || !strings.Contains(out, "another clone may have seen more") {
						t.Errorf("told: %s", out)
					}
				}
			}
			for _, s := range []seat{less, a.s} { // one after the other, in any order
				s.exits(0, "sh", "-c", push)
			}
			less.exits(0, "sh", "-c", push+" || true") // and again, by the one that has less
			if now := gittest.Git(t, a.remote, "rev-parse", "refs/lease/main"); now != tip {
				t.Errorf("the chain is at %s, want %s", now, tip)
			}
			clone(t, a.remote).reconciles(0)
		})
	}
}

// Who leads a chain over something is told what that leaves out.
func TestAdoptOverSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	s := clone(t, a.remote)
	s.exits(0, "git-lease", "show")
	a.remoteGit("update-ref", "-d", "refs/lease/main")
	a.remoteGit("update-ref", "-d", "refs/notes/landing/main")
	other := newAuthor(t, a.remote)
	other.lands()
	other.lands()
	tip := gittest.Git(t, a.remote, "rev-parse", "refs/lease/main")
	third := clone(t, a.remote)
	third.exits(0, "git-lease", "show")
	r := s.exits(0, "git-lease", "adopt", "--over", tip, "--reason", "r")
	if !strings.Contains(r.Stderr, "it goes on from event 2, ") || !strings.Contains(r.Stderr, "; 3 events that origin had are left out:\n    3  ") {
		t.Errorf("stderr %q", r.Stderr)
	}
	third.exits(0, "git-lease", "show")
	tip = gittest.Git(t, a.remote, "rev-parse", "refs/lease/main")
	r = third.exits(0, "git-lease", "adopt", "--over", tip, "--reason", "r")
	if !strings.Contains(r.Stderr, "accepted main at origin\n  this clone follows the chain as origin has it, up to event 4, and pushed nothing; 3 events that this clone had seen are left out:\n") {
		t.Errorf("stderr %q", r.Stderr)
	}
	a.remoteGit("update-ref", "-d", "refs/lease/main")
	r = third.exits(0, "git-lease", "adopt", "--over", tip, "--reason", "r")
	if !strings.Contains(r.Stderr, "it goes on from event 4, "+tip[:12]+"; what other clones have seen after that is left out\n") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// Records and verifications that were deleted, or put back to older ones, are given
// back by a clone that only looked at them; and what is gone is named all at once.
func TestNotesThatAreGonePutBack(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, looked := clone(t, remote), clone(t, remote)
	s.write(map[string]string{"one": "1\n", "two": "2\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "one", "--", "one")
	older := gittest.Refs(t, remote)
	s.exits(0, "git-land", "-x", "true", "-m", "two", "--", "two")
	looked.reconciles(0)
	whole := gittest.Refs(t, remote)
	const records, checks, chain = "refs/notes/landing/main", "refs/notes/verification", "refs/lease/main"
	for _, c := range []struct {
		lost map[string]string // to which older value; "" is deleted
		want string
	}{
		{map[string]string{records: "", checks: ""}, "records-not-fetched verifications-not-fetched"},
		{map[string]string{records: older[records], checks: older[checks]}, "verifications-not-fetched event-without-record"},
		{map[string]string{records: "", checks: "", chain: ""}, "chain-deleted records-not-fetched verifications-not-fetched"},
	} {
		for ref, to := range c.lost {
			if to == "" {
				gittest.Git(t, remote, "update-ref", "-d", ref)
			} else {
				gittest.Git(t, remote, "update-ref", ref, to)
			}
		}
		looked.try("git-lease", "show") // which must not forget what it saw
		got := looked.reconciles(7)
		if got.codes() != c.want {
			t.Errorf("found %q, want %q", got.codes(), c.want)
		}
		if out := looked.exits(0, "git-lease").Stdout; c.want[:5] == "chain" && !strings.Contains(out, "main at origin: ambiguous: ") {
			t.Errorf("git lease: %s", out)
		}
		for _, f := range got.Report.Findings {
			if !strings.HasPrefix(f.Command, "git push origin refs/lease-remote/origin/seen") {
				t.Errorf("%s is settled by %q", f.Code, f.Command)
				continue
			}
			looked.exits(0, "sh", "-c", f.Command)
		}
		sameRefs(t, "put back", whole, gittest.Refs(t, remote))
		looked.reconciles(0)
	}
	// They were begun anew before anybody knew: it is told, and the last copy stays.
	gittest.Git(t, remote, "update-ref", "-d", checks)
	s.write(map[string]string{"three": "3\n"})
	s.git("update-ref", "-d", "refs/lease-remote/origin/seen-verification")
	s.verify("three")
	if got := looked.reconciles(7).codes(); got != "verifications-not-fetched" {
		t.Errorf("found %q", got)
	}
	looked.git("rev-parse", "--verify", "refs/lease-remote/origin/lost/seen-verification/"+whole[checks])
	looked.reconciles(0, "--fix", "--reason", "seen")
	s.reconciles(0)
}

// A branch that was rewound is put back by one override, with the newest commit that it lost.
// Who has not got that is told who landed it. What is acknowledged stays so when the
// records are lost.
func TestRewoundBranchIsPutBack(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	a.lands()
	newest := a.lands()
	a.remoteGit("update-ref", "refs/heads/main", "main~2")
	got := a.s.reconciles(7)
	for _, f := range got.Report.Findings {
		if f.Command != "git land override --reason WHY "+string(newest.Commit)+":main" {
			t.Errorf("%s is settled by %q", f.Object, f.Command)
		}
	}
	s := clone(t, a.remote)
	if r := s.exits(7, "git-land", "reconcile"); strings.Count(r.Stdout, "landed by "+gittest.Identity+", unit "+newest.Unit+"; ") != 1 ||
		!strings.Contains(r.Stdout, "to settle it: git land reconcile --fix --reason WHY") {
		t.Errorf("where the commits are not: %s", r.Stdout)
	}
	s.reconciles(0, "--fix", "--reason", "rewound on purpose")
	if r := a.s.exits(0, "git-land", "status"); strings.Contains(r.Stdout, "rewound") {
		t.Errorf("what was acknowledged is told: %s", r.Stdout)
	}
	a.remoteGit("update-ref", "-d", "refs/notes/landing/main")
	s.reconciles(0, "--fix", "--reason", "written anew")
	if got := a.s.reconciles(0).Report.Acknowledged; len(got) != 3 || got[0].Code != "event-commit-gone" || got[1].Code != "event-commit-gone" {
		t.Errorf("acknowledged are %+v", got)
	}
}

// Records and verifications were deleted, and somebody landed before anybody noticed:
// a clone that saw the old ones merges them back, as they were, below what came since.
func TestNotesBegunAnewAreMerged(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, looked := clone(t, remote), clone(t, remote)
	s.write(map[string]string{"one": "1\n", "two": "2\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "one", "--", "one")
	s.exits(0, "git-land", "-x", "true", "-m", "two", "--", "two")
	looked.reconciles(0)
	const records, checks = "refs/notes/landing/main", "refs/notes/verification"
	tree := gittest.Git(t, remote, "rev-parse", "main^{tree}")
	note := func(ref, on string) string { return gittest.Git(t, remote, "notes", "--ref="+ref, "show", on) }
	one, two, checked := note(records, "main~"), note(records, "main"), note(checks, tree)
	gittest.Git(t, remote, "update-ref", "-d", records)
	gittest.Git(t, remote, "update-ref", "-d", checks)
	late := clone(t, remote)
	late.write(map[string]string{"three": "3\n"})
	late.exits(0, "git-land", "-x", "true", "-m", "three", "--", "three")
	late.exits(0, "git-land", "verify", "--record", "fail", "--check", "default", "--tree", tree) // of the same tree, and later
	before := gittest.Refs(t, remote)

	got := looked.reconciles(7)
	if got.codes() != "verifications-not-fetched event-without-record event-without-record" {
		t.Errorf("found %q", got.codes())
	}
	for _, f := range got.Report.Findings {
		if f.Command != "git land reconcile --fix" {
			t.Errorf("%s is settled by %q", f.Code, f.Command)
		}
	}
	looked.session("theirs").exits(0, "git-lease", "acquire")
	looked.exits(3, "git-land", "reconcile", "--fix")
	sameRefs(t, "under a hold", map[string]string{records: before[records], checks: before[checks]}, map[string]string{
		records: gittest.Refs(t, remote)[records], checks: gittest.Refs(t, remote)[checks]})
	looked.session("theirs").exits(0, "git-lease", "release")
	if got := looked.reconciles(0, "--fix"); len(got.Report.Settled) != 3 {
		t.Errorf("settled %+v", got.Report.Settled)
	}
	if a, b := note(records, "main~2"), note(records, "main~"); a != one || b != two {
		t.Errorf("the records are\n%s\n%s\nand were\n%s\n%s", a, b, one, two)
	}
	// What came since counts for more.
	if got := note(checks, tree); !strings.HasPrefix(got, checked+"\n") || !strings.Contains(got, `"verdict":"fail"`) {
		t.Errorf("the verifications are\n%s\nand were\n%s", got, checked)
	}
	for ref, was := range before {
		if strings.HasPrefix(ref, "refs/notes/") {
			gittest.Git(t, remote, "merge-base", "--is-ancestor", was, ref)
		}
	}
	if left := looked.git("for-each-ref", "refs/lease-remote/origin/lost"); left != "" {
		t.Errorf("left: %s", left)
	}
	if n := strings.Count(kinds(t, remote), "repair"); n != 0 {
		t.Errorf("%d repairs of what was merged", n)
	}
	late.reconciles(0)
	late.reconciles(0, "--fix")
}
