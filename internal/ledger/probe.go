package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
	"gitland/internal/session"
)

// knowledge is what this clone has found out about a remote URL.
type knowledge struct {
	Format int        `json:"format"`
	Head   object.Ref `json:"head,omitempty"` // the branch that its HEAD was on
	// CompareAndSwap means that the namespaces of Probed could be written, and
	// that of two pushes from one old value the later was refused.
	CompareAndSwap bool      `json:"compare_and_swap"`
	Atomic         bool      `json:"atomic"` // pushes several refs all or none
	Probed         []string  `json:"probed,omitempty"`
	When           time.Time `json:"when"`
}

func (l *Ledger) knowledge() (knowledge, error) {
	k := knowledge{Format: 1}
	var read knowledge
	err := l.Dir.LoadProbe(l.urlKey(), &read)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if _, io := errors.AsType[*fs.PathError](err); io {
		return k, err
	}
	if err != nil || read.Format != 1 {
		return k, nil // it is only a memory: ask again
	}
	if read.Head != "" {
		if _, err := object.ParseRef(string(read.Head)); err != nil {
			return k, nil
		}
	}
	return read, nil
}

func (l *Ledger) saveKnowledge(k knowledge) error {
	k.When = l.Now().UTC().Truncate(time.Second)
	return l.Dir.SaveProbe(l.urlKey(), k)
}

// Ready makes sure, before the first write to a remote URL, that the remote
// takes our refs and that its compare-and-swap is one. It returns a fault of
// class Unreachable when it is not. The result is kept.
func (l *Ledger) Ready(ctx context.Context) error {
	if l.IsLocal() {
		return nil // git's own ref transactions
	}
	l.sweepProbes(ctx)
	k, err := l.knowledge()
	if err != nil {
		return err
	}
	if k.CompareAndSwap && slices.Equal(k.Probed, l.spaces.probes) {
		return nil
	}
	l.Notice("trying %s once: are our refs writable, and is its compare-and-swap real?", l.Remote)
	if k.Atomic, err = l.probe(ctx); err != nil {
		return err
	}
	if !k.Atomic {
		l.Notice("%s cannot move several refs in one transaction: landings there take the lease, announce themselves, and move one ref after the other", l.Remote)
	}
	k.CompareAndSwap, k.Probed = true, l.spaces.probes
	return l.saveKnowledge(k)
}

// notAtomic keeps that the remote does not move several refs in one transaction any more, as
// it has said: what is tried next goes the other way.
func (l *Ledger) notAtomic() error {
	k, err := l.knowledge()
	if err != nil || !k.Atomic {
		return err
	}
	l.Notice("%s cannot move several refs in one transaction any more: what is done there next moves one ref after the other", l.Remote)
	k.Atomic = false
	return l.saveKnowledge(k)
}

// Doubt has the next Ready try the remote anew: it has refused what it should take, by
// what this clone once found out.
func (l *Ledger) Doubt() error {
	if l.IsLocal() {
		return nil
	}
	k, err := l.knowledge()
	if err != nil || !k.CompareAndSwap {
		return err
	}
	k.CompareAndSwap = false
	return l.saveKnowledge(k)
}

// Atomic reports whether the remote moves several refs all or none; only
// known after Ready.
func (l *Ledger) Atomic() (bool, error) {
	if l.IsLocal() {
		return true, nil
	}
	k, err := l.knowledge()
	return k.Atomic, err
}

// probeTime bounds the probe: a server without any notion of our refs may
// never answer (go-git's hangs on a deletion).
const probeTime = 2 * time.Minute

// probe writes one ref into each namespace and runs two forced races on it,
// one to create and one to update. The names begin with "%probe-", which no
// encoded lease name can.
func (l *Ledger) probe(ctx context.Context) (atomic bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p, err := l.newProbe(ctx)
	if err != nil {
		return false, err
	}
	keep := false
	defer func() { err = errors.Join(err, p.close(keep)) }()
	if atomic, err = p.create(ctx); err == nil {
		err = p.race(ctx, atomic)
	}
	cleanUp := p.remove(context.WithoutCancel(ctx))
	if git.Terminated(cleanUp) { // by a signal to our whole process group, which does not come again
		cleanUp = p.remove(context.WithoutCancel(ctx))
	}
	keep = cleanUp != nil // the next process tries again
	if err == nil && cleanUp != nil {
		l.Notice("the probe's refs %s could not be deleted from %s: %v", strings.Join(p.names(), " "), l.Remote, cleanUp)
	}
	return atomic, err
}

// A probe is one try of a remote.
type probe struct {
	ledger  *Ledger
	witness *session.Witness
	dir     string       // of the hook that stages the races; it is there as long as the refs may be
	refs    []object.Ref // one in each namespace, and one more for the race to create
	commits [3]object.OID
}

func (l *Ledger) newProbe(ctx context.Context) (p *probe, err error) {
	id := l.NewID()
	p = &probe{ledger: l, dir: l.probeDir(id)}
	if p.refs, err = l.probeRefs(id); err != nil {
		return nil, err
	}
	stamp, err := l.Repo.Stamp(l.Now())
	if err != nil {
		return nil, err
	}
	objects := []object.Object{l.Repo.Format.New(object.Tree, nil)}
	for i := range p.commits {
		o := l.Repo.Format.New(object.Commit, object.CommitData{Tree: objects[0].OID, Author: stamp, Committer: stamp,
			Message: fmt.Sprintf("lease: probe %s %d\n", id, i)}.Encode())
		p.commits[i] = o.OID
		objects = append(objects, o)
	}
	if err := l.Repo.Write(ctx, objects...); err != nil {
		return nil, err
	}
	if p.witness, err = l.Dir.Witness(id); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, errors.Join(err, p.witness.Remove())
	}
	return p, nil
}

// close ends a probe. keep leaves its refs to the next process to delete.
func (p *probe) close(keep bool) error {
	if keep {
		return p.witness.Close()
	}
	return errors.Join(os.RemoveAll(p.dir), p.witness.Remove())
}

// probeDir is the directory of the probe id of this remote. It outlives a
// process that is killed, and so tells the next one which refs to delete.
func (l *Ledger) probeDir(id ulid.ULID) string {
	return l.Dir.Path(probing, l.probeKey()+id.String())
}

const probing = "probing"

func (l *Ledger) probeKey() string { return l.urlKey()[:32] + "-" }

// probeRefs are the refs that the probe id writes.
func (l *Ledger) probeRefs(id ulid.ULID) ([]object.Ref, error) {
	var refs []object.Ref
	for _, space := range append(slices.Clone(l.spaces.probes), l.spaces.leases) {
		ref, err := probeRef(space, id.String(), len(refs))
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// inFlight is longer than a push that was sent is on its way. It decides only when
// one looks for refs once more that nobody uses.
const inFlight = 10 * time.Minute

// sweepProbes deletes the refs of probes that were killed: at once, and once more
// when what their pushes had on the way has come. It keeps nobody from going on.
func (l *Ledger) sweepProbes(ctx context.Context) {
	entries, _ := os.ReadDir(l.Dir.Path(probing)) // mostly there is none
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), l.probeKey())
		id, err := ulid.ParseStrict(name)
		if !ours || err != nil {
			continue
		}
		p := &probe{ledger: l, dir: l.probeDir(id)}
		before, err := os.Stat(p.swept())
		again := err == nil
		if again && time.Since(before.ModTime()).Abs() < inFlight {
			continue
		}
		if p.witness, err = l.Dir.Witness(id); err != nil {
			continue // it is under way
		}
		if p.refs, err = l.probeRefs(id); err == nil {
			err = p.remove(ctx)
		}
		if ctx.Err() != nil {
			p.witness.Close()
			return
		}
		if again {
			err = errors.Join(err, p.close(false))
		} else {
			err = errors.Join(err, os.WriteFile(p.swept(), nil, 0o600), p.witness.Remove())
		}
		if err != nil {
			l.Notice("a probe of %s was killed, and its refs %s could not be deleted: %v", l.Remote, strings.Join(p.names(), " "), err)
		}
	}
}

// swept is the file that says since when the refs of a killed probe are deleted.
func (p *probe) swept() string { return filepath.Join(p.dir, "swept") }

func (p *probe) names() []string {
	var names []string
	for _, ref := range p.refs {
		names = append(names, string(ref))
	}
	return names
}

// create writes a ref into each namespace, all at once if the remote can, and
// says whether it can. What git says of a remote that cannot is not parsed: the
// same push without --atomic tells.
func (p *probe) create(ctx context.Context) (atomic bool, err error) {
	l := p.ledger
	push := git.Push{Remote: l.remote, Atomic: true}
	for _, ref := range p.refs[:len(l.spaces.probes)] {
		push.Moves = append(push.Moves, git.Move{Ref: ref, New: p.commits[0], Old: git.MustNotExist()})
	}
	result, err := l.Repo.Push(ctx, push)
	if err != nil || result.Complete {
		return true, err
	}
	list, err := l.list(ctx)
	if err != nil {
		return false, err
	}
	push.Atomic = false
	var rest []git.Move
	for _, m := range push.Moves {
		if list.Refs[m.Ref] != m.New {
			rest = append(rest, m)
		}
	}
	if len(rest) == 0 { // only the answer was lost; and a push of nothing would be one of the current branch
		return true, nil
	}
	push.Moves = rest
	if result, err = l.Repo.Push(ctx, push); err != nil || result.Complete {
		return false, err
	}
	said := saidOf(result)
	for _, m := range rest {
		if result.Refs[m.Ref].Rejected {
			return false, fault.New(fault.Unreachable, "%s takes no refs below %s: %w", l.Remote, git.Namespace(m.Ref), said).
				WithHint("git config lease.namespace refs/heads/_lease   (and lease.notesNamespace refs/heads/_notes), for a host that takes only branches")
		}
	}
	return false, l.refused(said, rest[0].Ref)
}

// race lets a push be overtaken between its look at the remote and its
// sending, once where it updates and once where it creates.
func (p *probe) race(ctx context.Context, atomic bool) error {
	l := p.ledger
	update, other, create := p.refs[0], p.refs[1], p.refs[len(p.refs)-1]
	late := git.Push{Remote: l.remote, Atomic: atomic, Moves: []git.Move{{Ref: update, New: p.commits[1], Old: git.MustBe(p.commits[0])}}}
	if atomic { // the sibling shows whether all or none is meant
		late.Moves = append(late.Moves, git.Move{Ref: other, New: p.commits[1], Old: git.MustBe(p.commits[0])})
	}
	if _, err := l.Repo.Race(ctx, p.dir, late, git.Move{Ref: update, New: p.commits[2], Old: git.MustBe(p.commits[0])}); err != nil {
		return err
	}
	late = git.Push{Remote: l.remote, Moves: []git.Move{{Ref: create, New: p.commits[1], Old: git.MustNotExist()}}}
	if _, err := l.Repo.Race(ctx, p.dir, late, git.Move{Ref: create, New: p.commits[2], Old: git.MustNotExist()}); err != nil {
		return err
	}
	list, err := l.list(ctx)
	if err != nil {
		return err
	}
	switch {
	case list.Refs[update] == p.commits[2] && list.Refs[create] == p.commits[2] && (!atomic || list.Refs[other] == p.commits[0]):
		return nil
	case list.Refs[update] == p.commits[1] || list.Refs[create] == p.commits[1]:
		return fault.New(fault.Unreachable, "%s does not compare and swap: of two pushes at once the later overwrote the earlier, so nothing there can be a lease", l.Remote).
			WithHint("use a remote that runs git's own server, or `git config lease.remote .`")
	case list.Refs[update] == p.commits[0] || list.Refs[create] == "":
		return fault.New(fault.Unreachable, "the probe of %s could not be run: its pushes did not arrive", l.Remote).
			WithHint("git lease acquire   (again)")
	}
	return fault.New(fault.Unreachable, "%s moves some refs of an atomic push without the others", l.Remote)
}

// abandoned is an age, by two clocks that may both be wrong, at which a probe of
// somebody else's counts as dead. A probe is bounded to minutes.
const abandoned = 30 * 24 * time.Hour

// isAbandoned reports whether ref was left by a probe of a clone that may be gone.
func (l *Ledger) isAbandoned(ref object.Ref) bool {
	if role, _ := l.RoleOf(ref); role != Probe {
		return false
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(string(ref), git.Namespace(ref)+probePrefix), "-")
	probe, err := ulid.ParseStrict(strings.ToUpper(id))
	return err == nil && l.Now().Sub(ulid.Time(probe.Time())) > abandoned
}

// remove deletes the probe's refs, and those of others that were abandoned.
func (p *probe) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	list, err := p.ledger.list(ctx)
	if err != nil {
		return err
	}
	push := git.Push{Remote: p.ledger.remote}
	for _, ref := range p.refs {
		if oid := list.Refs[ref]; oid != "" {
			push.Moves = append(push.Moves, git.Move{Ref: ref, Old: git.MustBe(oid)})
		}
	}
	own := len(push.Moves)
	for ref, oid := range list.Refs {
		if p.ledger.isAbandoned(ref) && !slices.Contains(p.refs, ref) {
			push.Moves = append(push.Moves, git.Move{Ref: ref, Old: git.MustBe(oid)})
		}
	}
	if len(push.Moves) == 0 {
		return nil
	}
	result, err := p.ledger.Repo.Push(ctx, push)
	for _, m := range push.Moves[:own] { // what is not ours is worth no failure
		if err == nil && !result.Complete && !result.Refs[m.Ref].OK {
			err = saidOf(result)
		}
	}
	return err
}
