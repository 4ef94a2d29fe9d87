package land

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
	"gitland/internal/step"
)

// maxRepeats is how often the very same push is sent when it neither arrived
// nor was overtaken.
const maxRepeats = 3

// An openError is a landing of which it is not known whether it arrived. Its
// journal stays.
type openError struct{ fault *fault.Error }

func (e *openError) Error() string { return e.fault.Error() }
func (e *openError) Unwrap() error { return e.fault }

// A built is a landing with all its objects, ready to be pushed.
type built struct {
	plan    plan
	commit  object.OID
	event   event.Event
	record  note.Record
	draft   *ledger.Draft
	objects []object.Object // not written yet
	attempt attempt
	moves   []git.Move
	others  []*git.Repo // worktrees that have to follow
	refused bool        // each push of it, by the remote's own answer: none is on its way
}

// push builds the landing on p and pushes branch, record and event in one
// transaction. It reports false when the race was lost and all has to be
// planned anew.
func (m *motion) push(ctx context.Context, p plan, gate verdict) (done bool, err error) {
	if err := m.l.Ready(ctx); err != nil {
		return false, err
	}
	b, err := m.build(ctx, p, gate)
	if err != nil {
		return false, err
	}
	if b.others, err = m.around(ctx, b); err != nil {
		return false, err
	}
	if err := m.change.headStillExpected(ctx, m.l.Repo); err != nil {
		return false, err
	}
	m.sent = true
	m.tried = append(m.tried, b)
	m.journal.Attempts = append(m.journal.Attempts, b.attempt)
	if err := m.ready(ctx, b); err != nil {
		return false, err
	}
	done, err = m.publish(ctx, b)
	if done && b.attempt.Apart {
		done, err = m.carry(ctx, &b)
	}
	if done {
		m.landed(ctx, b)
	}
	return done, err
}

// ready puts journal and objects on disk, side by side: the one waits for the
// disk, the other for a process.
func (m *motion) ready(ctx context.Context, b built) error {
	written := make(chan error, 1)
	go func() { written <- m.l.Repo.Write(ctx, b.objects...) }()
	err := m.write()
	return cmp.Or(err, <-written)
}

// landed tells that b has, and brings the local side along.
func (m *motion) landed(ctx context.Context, b built) {
	m.result.Status, m.result.Base, m.result.Commit, m.result.Tree = Landed, b.plan.view.Base, b.commit, b.plan.tree
	m.result.Event, m.result.Record, m.arrived = b.event.OID, b.record, b.attempt
	m.bringAlong(ctx, b)
}

// halfway looks for a push of this landing whose commit is on the branch though
// its event is not on the chain, and finishes it. Without that, the next plan
// would find the change there and take it for somebody else's.
func (m *motion) halfway(ctx context.Context, v ledger.View) (done bool, err error) {
	if len(m.tried) == 0 {
		return false, nil
	}
	fate, err := m.l.Trace(ctx, v, m.journal.attempts())
	if err != nil {
		return false, m.open(err)
	}
	half, byOthers, err := onBranch(ctx, m.l, v, m.journal, fate)
	if err != nil {
		return false, m.open(err)
	}
	i := slices.IndexFunc(m.tried, func(b built) bool { return half != nil && !byOthers && b.commit == half.Commit })
	if i < 0 {
		return false, nil
	}
	b := m.tried[i]
	if done, err = m.withdraw(ctx, errors.New("the server moved the branch alone")); done {
		m.pushed()
		m.landed(ctx, b)
	}
	return done, err
}

// build makes every object of the landing: commits, record, event.
func (m *motion) build(ctx context.Context, p plan, gate verdict) (built, error) {
	b := built{plan: p}
	own := lease.Owns(m.root, p.view.Tip)
	m.journal.Brought = p.view.Hold() != nil && !own
	if m.journal.Brought {
		m.journal.Lent, m.journal.Hold = lease.SecretOf(m.brought.Root, p.view.Tip), p.view.Hold().Operation
	}
	if p.view.Hold() == nil {
		m.tell("leased", fmt.Sprintf("%s at %s, within the push", p.view.Name, m.l.Remote))
	} else if !own {
		m.tell("leased", fmt.Sprintf("%s at %s, by this session's operation %s", p.view.Name, m.l.Remote, p.view.Hold().Operation))
	}
	m.tell("based", fmt.Sprintf("on %s %s", p.view.Branch.Branch(), nonEmpty(p.view.Base.Short(), "(unborn)")))
	series, err := p.commits(ctx, m.l, m.message())
	if err != nil {
		return b, err
	}
	b.commit, m.result.Commits = series.tip, series.count
	m.tell("committed", fmt.Sprintf("%s (tree %s)", b.commit.Short(), p.tree.Short()))

	d, err := m.l.Draft(p.view)
	if err != nil {
		return b, err
	}
	b.draft = d
	if err := d.Adopt(ctx, p.view.Branch, p.view.Base); err != nil {
		return b, err
	}
	act := m.landEvent(p, b.commit, gate)
	if hold := p.view.Hold(); hold != nil {
		act.By.Operation = hold.Operation
		if own && !m.apart && len(m.journal.Steps) == 0 { // it took the lease itself, so it gives it back in this push
			act.By.Secret = lease.SecretOf(m.root, p.view.Tip)
		}
	}
	b.record = m.record(p, act.By, gate, d, series.count)
	line, err := note.EncodeLine(b.record)
	if err != nil {
		return b, fmt.Errorf("write the record: %w", err)
	}
	if err := m.journal.canEnd(line); err != nil {
		return b, err
	}
	if m.apart {
		if err := unannounced(line); err != nil {
			return b, err
		}
		act.Kind, act.By.Record = event.Intent, line
	}
	if b.event, err = d.Add(ctx, act); err != nil {
		return b, err
	}
	if m.apart {
		b.moves = []git.Move{d.Move()}
		branch := git.Move{Ref: p.view.Branch, New: b.commit, Old: git.Was(p.view.Base)}
		b.attempt = attempt{Attempt: d.Attempt(), Commit: b.commit, Tree: p.tree, Moves: saveMoves([]git.Move{branch, d.Move()}), Record: line, Land: *act.By.Land, Apart: true, Announced: b.event.OID}
		b.objects = slices.Concat(series.objects, d.Objects())
		return b, nil
	}
	subject := fmt.Sprintf("landing %s on %s by %s", b.commit.Short(), p.view.Branch.Branch(), d.Actor())
	notes, err := m.l.AppendNotes(ctx, p.view.Records, subject, []ledger.NoteLine{{On: b.commit, Text: line}})
	if err != nil {
		return b, err
	}
	records, err := m.l.RecordsRef(p.view.Name)
	if err != nil {
		return b, err
	}
	b.moves = []git.Move{
		{Ref: p.view.Branch, New: b.commit, Old: git.Was(p.view.Base)},
		// A server that dies inside the transaction of a first landing must not
		// leave records without a chain, which is what a deleted chain looks like.
		d.Move(),
		{Ref: records, New: notes.Tip, Old: git.Was(p.view.Records)},
	}
	b.attempt = attempt{Attempt: d.Attempt(), Commit: b.commit, Tree: p.tree, Moves: saveMoves(b.moves), Record: line, Land: *act.By.Land}
	b.objects = slices.Concat(series.objects, d.Objects(), notes.Objects)
	return b, nil
}

func (m *motion) landEvent(p plan, commit object.OID, gate verdict) event.Event {
	landing := &event.Landing{ID: m.journal.Landing, Unit: m.journal.Unit, Branch: p.view.Branch,
		Base: p.view.Base, Commit: commit, Tree: p.tree, Steps: step.Names(m.journal.Steps)}
	if !gate.judgement.Pass {
		landing.Unverified = event.CleanText(strings.Join(gate.judgement.Missing, " "), event.MaxText)
		landing.Reason = event.CleanText(m.r.Reason, event.MaxText)
	}
	return event.Event{Kind: event.Land, By: event.By{Operation: m.journal.Operation, Land: landing}}
}

func (m *motion) record(p plan, by event.By, gate verdict, d *ledger.Draft, count int) note.Record {
	r := note.Record{
		Format: note.Format, ID: m.journal.Landing, Unit: m.journal.Unit, Operation: by.Operation, Lease: p.view.Name,
		Branch: p.view.Branch, Base: p.view.Base, Commit: by.Land.Commit, Tree: p.tree, Commits: count,
		Verifications: gate.judgement.Passing, VerificationRef: p.view.Verifications, MergedUnverified: gate.merged,
		Flaky: gate.judgement.Flaky(), Actor: d.Actor(), Host: m.l.Host, Time: d.Time().UTC().Truncate(time.Second),
	}
	r.Note, r.NoVerify, r.Allowed, r.Steps = m.result.Note, m.r.NoVerify, p.allowed, step.Results(m.journal.Steps)
	if p.makes() && p.change.kind == fromCommits && p.mode == policy.Squash {
		r.Squashed = p.change.head
	}
	if !gate.judgement.Pass {
		r.Override = &note.Override{Reason: by.Land.Reason, Actor: d.Actor(), Missing: gate.judgement.Missing}
	}
	return r
}

// publish sends the push until it is known what became of it.
func (m *motion) publish(ctx context.Context, b built) (done bool, err error) {
	p := ledger.Publication{Moves: b.moves, Hooks: !b.attempt.Apart, Message: "land: " + m.journal.Unit,
		Environ: ledger.HookEnviron(b.event.By.Operation, b.event.OID)}
	var said error
	answered := true // with no, each time
	for repeat := range maxRepeats {
		if repeat > 0 && ledger.Pause(ctx, ledger.Backoff(repeat+1, time.Second)) != nil {
			return m.interrupted(ctx, b)
		}
		out, err := m.l.Publish(ctx, p)
		if err != nil && repeat > 0 { // an earlier one was sent
			err = m.open(err)
		}
		if err != nil {
			return false, err
		}
		if out.Done {
			m.loose = false
			m.l.Moved(b.plan.view, b.moves)
			if !b.attempt.Apart {
				m.pushed()
			}
			m.l.Begun(b.draft)
			return true, nil
		}
		if ctx.Err() != nil {
			return m.interrupted(ctx, b)
		}
		if out.Unsent && repeat == 0 { // else an earlier one was sent
			return false, m.unmade("a hook of this clone refused the push, and nothing landed: %w", out.Said)
		}
		said, answered = out.Said, answered && out.Refused
		m.tried[len(m.tried)-1].refused = answered
		v, fate, err := m.reread(ctx)
		if err != nil {
			return false, m.open(err)
		}
		if !fate.Pending {
			m.loose = false
			return m.judgeFate(ctx, b, v, fate)
		}
		if !b.attempt.Apart && (v.Base != b.plan.view.Base || v.Records != b.plan.view.Records) {
			// Somebody pushed to the branch or the notes alone. This push cannot
			// arrive any more unless they go back, and the next one moves the chain.
			m.heldWay, m.next, m.loose = true, &v, true
			return false, nil
		}
		if (out.Declined || repeat == maxRepeats-1) && m.over(b.attempt.Expected) {
			return false, m.unmade("%s refused the push, and nothing landed: %w", m.l.Remote, said)
		}
	}
	return m.withdraw(ctx, said)
}

// over reports whether no push of this landing that named the tip is on its way:
// the remote has refused each by its own answer. Nothing has to outrun them.
func (m *motion) over(tip object.OID) bool {
	return !slices.ContainsFunc(m.tried, func(b built) bool { return b.attempt.Expected == tip && !b.refused })
}

// unmade takes back the attempt of a push that was never sent, or that the remote
// has refused. It cannot arrive, so nothing has to outrun it.
func (m *motion) unmade(format string, args ...any) error {
	last := len(m.tried) - 1
	m.tried, m.journal.Attempts = m.tried[:last], m.journal.Attempts[:last]
	if err := m.write(); err != nil {
		return m.open(err)
	}
	return fault.New(fault.Unreachable, format, args...).WithHint("mend what it objects to, and run git land again")
}

func (m *motion) pushed() { m.tell("pushed", "to "+m.l.Remote) }

// reread finds out what the authority says of the pushes made so far.
func (m *motion) reread(ctx context.Context) (ledger.View, ledger.Fate, error) {
	v, err := m.l.Fetch(ctx, m.want)
	if err != nil {
		return v, ledger.Fate{}, err
	}
	fate, err := m.l.Trace(ctx, v, m.journal.attempts())
	return v, fate, err
}

func (m *motion) hasEnded(f ledger.Fate) bool {
	a, _ := m.journal.ended(f)
	return a != nil
}

// judgeFate acts on a push that was overtaken, or that arrived although its
// answer did not.
func (m *motion) judgeFate(ctx context.Context, b built, v ledger.View, fate ledger.Fate) (done bool, err error) {
	switch {
	case m.hasEnded(fate):
		m.pushed()
		return true, complete(ctx, m.l, m.want, v, b.attempt)
	case fate.Arrived != nil && fate.Arrived.Kind == event.Intent && m.sequence().announced(v):
		if fate.Arrived.OID == b.event.OID {
			return true, nil
		}
		// An earlier intent of this landing, with another commit.
		return false, m.takeBack(ctx, m.sequence(), nil, "planned anew")
	case b.plan.view.Hold() == nil:
		// A lost race: nothing was held, so nothing was lost. From now on the
		// lease is taken first, so that nobody loses for ever.
		m.heldWay, m.next = true, &v
		return false, nil
	case m.holds(v):
		m.next = &v
		return false, nil // something else on the chain or the notes moved: rebuild
	}
	// The lease is gone. The branch is read after the chain, in a connection
	// of its own: a server that died between two refs can have moved it alone.
	again, err := m.l.Fetch(ctx, m.want)
	if err != nil {
		return false, m.open(err)
	}
	if in, err := isIn(ctx, m.l, b.commit, again.Base); err != nil || in {
		if err == nil {
			err = fmt.Errorf("%s has %s, but the lease's chain does not say so", again.Branch.Branch(), b.commit.Short())
		}
		return false, m.open(err)
	}
	return false, m.lost(ctx, again)
}

// open is the fault of a landing whose outcome is not known.
func (m *motion) open(cause error) error {
	f := fault.New(fault.Unreachable, "it is not known whether operation %s landed: %w", m.journal.Operation, cause).
		WithHint("git land resume   (when %s can be reached, and takes pushes: it finds out)", m.l.Remote)
	var told *fault.Error
	if errors.As(cause, &told) && told.Class == fault.Ambiguous { // it can be reached, and the chain has to be mended first
		f.Class, f.Hint, f.Facts = told.Class, told.Hint, told.Facts
	}
	return &openError{f}
}

// interrupted settles a push that was told to stop.
func (m *motion) interrupted(ctx context.Context, b built) (done bool, err error) {
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	v, fate, err := m.reread(ctx)
	if err != nil {
		return false, m.open(err)
	}
	if m.hasEnded(fate) {
		return m.judgeFate(ctx, b, v, fate)
	}
	if done, err := m.withdraw(ctx, cause); done || isOpen(err) {
		return done, err
	}
	return false, cause
}

func isOpen(err error) bool {
	_, open := err.(*openError)
	return open
}

// withdraw makes sure that a push which has not arrived never will, by moving
// the chain past the tip that it named, and says that it did not land.
func (m *motion) withdraw(ctx context.Context, said error) (done bool, err error) {
	arrived, byOthers, err := m.sequence().outrun(ctx, "")
	switch {
	case err != nil:
		return false, m.open(err)
	case byOthers:
		m.root, m.journal.Token = session.Root{}, ""
		return false, nil // the next plan finds it there
	case arrived != nil:
		v, err := m.l.Fetch(ctx, m.want)
		if err != nil {
			return false, m.open(err)
		}
		return true, complete(ctx, m.l, m.want, v, *arrived)
	}
	m.root, m.journal.Token = session.Root{}, "" // outrun has ended the hold
	return false, fault.New(fault.Unreachable, "%s refused the push, and nothing landed: %w", m.l.Remote, said).
		WithHint("mend what it objects to, and run git land again")
}
