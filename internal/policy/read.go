package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
)

// maxFile bounds the file, in bytes: anybody who may push can make it as large as
// they like.
const maxFile = 64 << 10

// A Reader reads the policies of one repository, each file once. It may be used by
// several at once.
type Reader struct {
	repo *git.Repo
	own  Policy

	mu    sync.Mutex
	files map[object.OID]Policy
}

// NewReader takes the user's own configuration as it is now. The error is that of
// Configured.
func NewReader(repo *git.Repo) (*Reader, error) {
	own, err := Configured(repo.Config)
	return &Reader{repo: repo, own: own, files: map[object.OID]Policy{}}, err
}

// At is the policy at a commit, named by its id or by a full ref; where there is no
// such commit, or it has no file, it is the user's own. A file that cannot be
// understood is no error: it is Policy.Problem.
func (r *Reader) At(ctx context.Context, commit string) (Policy, error) {
	if commit == "" {
		return r.own, nil
	}
	o, err := r.repo.Object(ctx, commit)
	if errors.Is(err, git.ErrNotFound) || err == nil && o.Kind != object.Commit {
		return r.own, nil
	}
	if err != nil {
		return Policy{}, err
	}
	c, err := object.ReadCommit(o.Data)
	if err != nil {
		return Policy{}, fmt.Errorf("%s: %w", o.OID.Short(), err)
	}
	return r.In(ctx, c.Tree)
}

// In is At for a tree, which has to be there.
func (r *Reader) In(ctx context.Context, tree object.OID) (Policy, error) {
	if tree == r.repo.Format.EmptyTree() {
		return r.own, nil
	}
	o, err := r.repo.Object(ctx, string(tree))
	if err != nil {
		return Policy{}, err // a tree that is missing says nothing of what is in it
	}
	entries, err := r.repo.Format.ParseTree(o.Data)
	if err != nil {
		return Policy{}, fmt.Errorf("tree %s: %w", tree.Short(), err)
	}
	i := slices.IndexFunc(entries, func(e object.TreeEntry) bool { return e.Name == File })
	if i < 0 {
		return r.own, nil
	}
	if m := entries[i].Mode; m != "100644" && m != "100755" { // the same blob may be a file elsewhere
		return Policy{Blob: entries[i].OID, Problem: problem(entries[i].OID, "is no regular file")}.over(r.own), nil
	}
	r.mu.Lock()
	p, known := r.files[entries[i].OID]
	r.mu.Unlock()
	if !known {
		if p, err = r.read(ctx, entries[i]); err != nil {
			return Policy{}, err
		}
		r.mu.Lock()
		r.files[p.Blob] = p
		r.mu.Unlock()
	}
	return p.over(r.own), nil
}

func (r *Reader) read(ctx context.Context, e object.TreeEntry) (Policy, error) {
	p := Policy{Blob: e.OID}
	o, err := r.repo.Object(ctx, string(e.OID))
	switch {
	case errors.Is(err, git.ErrTooLarge):
		p.Problem = problem(e.OID, fmt.Sprintf("is larger than the %d bytes that are allowed", maxFile))
	case err != nil:
		return p, err
	case len(o.Data) > maxFile:
		p.Problem = problem(e.OID, fmt.Sprintf("is larger than the %d bytes that are allowed", maxFile))
	case bytes.IndexByte(o.Data, 0) >= 0 || !utf8.Valid(o.Data):
		p.Problem = problem(e.OID, "is not UTF-8 text")
	}
	if p.Problem != nil {
		return p, nil
	}
	settings, err := r.repo.Settings(ctx, e.OID)
	if failed := (*git.Error)(nil); errors.As(err, &failed) && failed.ExitCode == 128 {
		p.Problem = problem(e.OID, "is not in git's configuration syntax: "+words(failed.Stderr))
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p, unknown, wrong := parse(settings, true)
	p.Blob = e.OID
	var faults []string
	if len(unknown) > 0 {
		faults = append(faults, "has keys that this version does not know: "+event.CleanText(strings.Join(unknown, ", "), event.MaxText)+unlike(unknown))
	}
	for _, w := range wrong {
		faults = append(faults, event.CleanText(w.key+" "+w.why, event.MaxText))
	}
	if room(p.Checks) > maxRoom {
		faults = append(faults, fmt.Sprintf("has %d checks, which are more, or longer, than the record of a landing can name", len(p.Checks)))
	}
	if len(faults) > 0 {
		p.Problem = problem(e.OID, strings.Join(faults[:min(len(faults), 8)], "; "))
		p.Newer = len(unknown) > 0
	}
	return p, nil
}

// A record names each check that has passed, on one line of at most note.MaxLine bytes;
// the rest of that is for everything else.
const (
	maxRoom   = 56 << 10
	checkRoom = 400 // for what is found, by whom, when and on what
)

// room is how much of a record checks take, about.
func room(checks []Check) (n int) {
	for _, c := range checks {
		// The name stands twice where the check is flaky.
		n += checkRoom + 2*len(c.Name) + len(c.Text) + strings.Count(c.Text, `"`) + strings.Count(c.Text, `\\`)
	}
	return n
}

// problem is the fault of a file that is not understood. Who lands says what it keeps
// from being done.
func problem(blob object.OID, what string) *fault.Error {
	return fault.New(fault.Unverified, "the policy %s (%s) %s", File, blob.Short(), what).WithFacts(map[string]any{"policy": blob})
}

// unlike says what the keys could have been.
func unlike(unknown []string) string {
	for _, key := range unknown {
		if slices.Contains(clones, key) {
			return " (" + key + " is for a clone's own configuration)"
		}
	}
	return " (it knows land.check.NAME.command, land.check.NAME.retries, land.step.NAME.run, land.step.NAME.check, " + strings.Join(files, ", ") + ")"
}

// words is the first line of what git says of a file.
func words(stderr string) string {
	line, _, _ := strings.Cut(stderr, "\n")
	_, what, named := strings.Cut(line, ": ")
	if !named {
		what = line
	}
	return event.CleanText(what, event.MaxText)
}
