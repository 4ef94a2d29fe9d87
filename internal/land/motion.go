package land

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
)

// A motion is one landing under way.
type motion struct {
	l         *ledger.Ledger
	r         Request
	witness   *session.Witness
	journal   journal
	written   bool         // the journal is on disk
	want      ledger.Want  // what r.Want has come to mean
	next      *ledger.View // fetched by the way, to plan on
	change    change
	landPaths []string // by which that was chosen, where no paths were named
	sent      bool     // a push was tried, whatever became of it
	tried     []built  // what was pushed, as in journal.Attempts
	arrived   attempt  // that of them which has landed
	text      string   // the commit message, or the record's note
	hooked    *hooked  // what hooks made of change and text; nil before they ran
	brought   session.Session
	wait      *lease.Waiter
	start     time.Time // of the wait for the lease

	apart   bool         // the remote cannot move refs together: announce the landing, on the held way
	heldWay bool         // take the lease before the push: a race was lost, or a base moved under a check
	root    session.Root // of the lease that this landing acquired
	loose   bool         // a push was sent that nothing but the branch, or the notes, keeps out
	checked bool         // -x has run once
	rewound bool         // that has been told
	doubt   bool         // the remote is to be tried anew, the next time
	planned *ledger.View // what the plan in work, or the last one, is made on
	again   int          // pushes made when that was told to be made anew
	result  Result
}

// Land brings a change onto its target. It first concludes a landing of this
// worktree that died, so that running it again is always safe.
//
// Refusals are faults: Unverified by the gate, Conflict with the base or for an
// ambiguous choice, Held when the lease stays somebody else's, Lost when it was
// broken under this landing, Ambiguous and Unreachable for the authority. After
// a refusal nothing has landed, and what Land acquired is given back; only a
// fault of class Unreachable, or Lost, may leave it open whether the push arrived,
// and says so. A dry run that would be refused has its plan beside the fault.
func Land(ctx context.Context, l *ledger.Ledger, r Request) (Result, error) {
	if err := CheckReason(r.Reason); r.Force && err != nil {
		return Result{}, err
	}
	kept := false
	if !r.DryRun {
		if err := ownIndex(l); err != nil {
			return Result{}, err
		}
		var moved []string
		var err error
		if kept, moved, err = concludeDead(ctx, l, Ending{Session: r.Session, Setting: r.Setting}, &r.Waiting.Limit); err != nil {
			if f, ok := errors.AsType[*fault.Error](err); ok && f.Facts["step"] != nil {
				f.WithDetails("nothing of this landing was begun: run it again after that")
			}
			return Result{}, err
		}
		if slices.Contains(moved, r.ExpectHead) { // it was there when that began, which is this once more
			r.ExpectHead = ""
		}
		sweep(l)
	}
	m, err := newMotion(l, r)
	if err != nil {
		return Result{}, err
	}
	defer m.close()
	view, guess, err := m.look(ctx)
	if err == nil {
		err = m.run(ctx, view, guess)
	}
	if err != nil {
		err = errors.Join(err, m.giveUp(ctx, err))
		if m.doubt {
			err = errors.Join(err, l.Doubt())
		}
		return m.result, err
	}
	if m.result.Status == Landed {
		if err := m.follow(ctx); err != nil {
			return m.result, err
		}
		m.afterwards(ctx)
	} else if err := m.giveUp(ctx, nil); err != nil {
		return m.result, err
	}
	if kept { // it has arrived meanwhile, or the branch has gone on without it
		if _, _, err := concludeDead(context.WithoutCancel(ctx), l, Ending{Session: r.Session, Setting: r.Setting}, new(time.Duration)); err != nil {
			m.warn("an earlier landing is not concluded yet: %v", err)
		}
	}
	return m.result, nil
}

// CheckReason refuses a reason with which nobody lands unverified: one that is
// empty, or only copied from a hint. The error is of class Usage.
func CheckReason(reason string) error {
	_, err := lease.Reason(reason, "landing unverified is", "why it cannot wait for its verification")
	return err
}

func newMotion(l *ledger.Ledger, r Request) (*motion, error) {
	r.Selection.check, r.Selection.command, r.Selection.steps = r.Check, r.Command, r.Steps
	if r.Force {
		r.Selection.reason = r.Reason
	}
	m := &motion{l: l, r: r, text: message(r.Messages), wait: lease.NewWaiter(r.Waiting), start: time.Now()}
	if s, err := r.Session.Load(); err == nil {
		m.brought = s
	} else if !errors.Is(err, session.ErrNoToken) {
		return nil, err
	}
	m.journal = journal{Format: journalFormat, Operation: l.NewID(), Landing: l.NewID(), GitDir: l.Repo.Place(), Remote: l.Remote, Address: l.Address(), Check: r.Check, Command: r.Command}
	var err error
	m.witness, err = l.Dir.Witness(m.journal.Operation)
	switch {
	case r.DryRun:
		err = nil // it is for temporary files alone
	case err == nil:
		m.journal.Origin, err = l.Dir.Origin(m.journal.Operation)
	}
	return m, err
}

// close lets go of the witness; of a finished operation it removes it.
func (m *motion) close() {
	m.change.drop()
	switch {
	case m.witness == nil:
	case m.written:
		m.witness.Close()
	default:
		m.witness.Remove()
	}
}

// look reads the worktree and the authority side by side: neither needs the
// other, and both take their time. Where the mirror is fresh the authority is
// not asked at all, and what comes back is a guess, which may lead to a push and
// to nothing else.
func (m *motion) look(ctx context.Context) (view ledger.View, guess bool, err error) {
	var expected policy.Policy
	if m.r.Paths == nil { // else land.paths are not asked for
		if expected, err = m.l.Expected(ctx, m.r.Want); err != nil {
			return view, false, err
		}
	}
	var wg sync.WaitGroup
	var changeErr, identErr, authorErr error
	wg.Go(func() { changeErr = m.readChange(ctx, expected.Paths) })
	wg.Go(func() { _, identErr = m.l.Repo.Ident() })
	wg.Go(func() { _, authorErr = m.l.Repo.Author() })
	if !m.r.DryRun {
		view, guess = m.l.Mirror(ctx, m.r.Want)
	}
	if !guess {
		view, err = m.l.Fetch(ctx, m.r.Want)
	}
	wg.Wait()
	if m.change.kind == fromCommits { // which have their authors
		authorErr = nil
	}
	if err := cmp.Or(changeErr, identErr, authorErr, err); err != nil {
		return view, false, err
	}
	return view, guess, m.aim(ctx, view)
}

// readChange reads what the selection chooses; where it names no paths, within landPaths.
func (m *motion) readChange(ctx context.Context, landPaths []string) (err error) {
	m.change.drop()
	m.landPaths = landPaths
	m.change, err = readChange(ctx, m.l, m.r.Selection, landPaths, m.journal.Operation.String())
	return err
}

// aim settles where the change lands, and under which lease, as v has chosen them; and
// what it is, where the policy there has other paths than was thought.
func (m *motion) aim(ctx context.Context, v ledger.View) error {
	if m.r.Paths == nil && !slices.Equal(v.Policy.Paths, m.landPaths) {
		if err := m.readChange(ctx, v.Policy.Paths); err != nil {
			return err
		}
	}
	if m.change.kind != fromCommits && !m.r.commitsAlone() && m.text == "" && len(m.change.diff) > 0 && !m.r.DryRun {
		return fault.New(fault.Usage, "a commit needs a message").WithHint("add -m '%s'", Message)
	}
	m.want = ledger.Want{Name: v.Name, Branch: v.Branch}
	j := &m.journal
	j.Lease, j.Branch, j.Unit = v.Name, v.Branch, m.unit(v)
	j.Text, j.Allow, j.Mode, j.Rev, j.ExpectBase, j.ExpectHead = m.text, m.r.Allow, m.r.Mode, m.r.Head, m.r.ExpectBase, m.r.ExpectHead
	j.NoVerify = m.r.NoVerify
	j.Kind, j.Local, j.Head, j.HeadTree, j.Tree, j.Staged = m.change.kind, m.change.branch, m.change.head, m.change.headTree, m.change.tree, saveChanges(m.change.staged)
	j.Elsewhere = m.change.apart
	return nil
}

// fetch is the state to plan on next.
func (m *motion) fetch(ctx context.Context) (ledger.View, error) {
	if v := m.next; v != nil {
		m.next = nil
		return *v, nil
	}
	return m.l.Fetch(ctx, m.want)
}

func (m *motion) unit(v ledger.View) string {
	return cmp.Or(chooseUnit(m.r.Selection, m.change, v.Branch), m.journal.Landing.String())
}

// chooseUnit is the unit asked for, else the name of the branch that lands when it is not
// the target's; else it is "".
func chooseUnit(s Selection, c change, target object.Ref) string {
	branch := c.branch
	if c.apart {
		_, name, _ := strings.Cut(strings.TrimPrefix(c.ref, "refs/"), "/")
		branch = object.Ref(name)
	}
	switch {
	case s.Unit != "":
		return event.CleanText(s.Unit, event.MaxText)
	case branch != target:
		return event.CleanText(branch.Branch(), event.MaxText)
	}
	return ""
}

func (m *motion) describe(p plan) {
	j, warnings := m.journal, m.result.Warnings
	m.result = Result{Warnings: warnings, Remote: m.l.Remote, Lease: j.Lease, Branch: j.Branch, ID: j.Landing, Operation: j.Operation,
		Unit: j.Unit, Base: p.view.Base, Tree: p.tree, Commits: p.count(), Paths: m.change.paths()}
	if m.change.kind == fromCommits {
		m.result.Mode = p.mode
	}
	if !p.makes() {
		m.result.Note = strings.TrimSpace(m.text)
	}
}

// write puts the journal on disk.
func (m *motion) write() error {
	m.written = true
	if err := m.l.Dir.Journal().Write(m.journal.Operation, m.journal); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// forget removes the journal of an operation that is over.
func (m *motion) forget() error {
	if !m.written {
		return nil
	}
	if err := m.l.Dir.Journal().Remove(m.journal.Operation); err != nil {
		return err
	}
	m.written = false
	return nil
}

func (m *motion) tell(name, text string) {
	if m.r.Tell != nil {
		m.r.Tell(name, text)
	}
}

func (m *motion) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.result.Warnings = append(m.result.Warnings, text)
	if m.r.Warn != nil {
		m.r.Warn(text)
	}
}
