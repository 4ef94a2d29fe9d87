package land

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
	"gitland/internal/step"
)

// A Conclusion is how a landing that had not ended was brought to its end.
type Conclusion struct {
	Operation ulid.ULID  `json:"operation"`
	Remote    string     `json:"remote"`
	Lease     string     `json:"lease"`
	Branch    object.Ref `json:"branch"`
	Unit      string     `json:"unit"`
	// Landed says which end: the commit is on the branch, with record and
	// event; or nothing of it is at the authority, nor can it arrive any more.
	Landed bool `json:"landed"`
	// Override are the moves where it is no landing but an override: Landed says
	// whether they were made. Of the rest it has GivenUp and Again.
	Override []event.Update `json:"override,omitempty"`
	Commit   object.OID     `json:"commit,omitempty"`
	// Gone means that the branch was rewritten since, and has it no more.
	Gone bool `json:"gone,omitempty"`
	// Already means that it had come to this end before.
	Already bool `json:"already,omitempty"`
	// Withdrawn says who had given it up before, or had made sure that it could not
	// arrive; nil where nobody had.
	Withdrawn *Withdrawal `json:"withdrawn,omitempty"`
	// ByOthers means that another landing, or a repair, brought it there; of an override,
	// that no event of its own says so.
	ByOthers bool `json:"by_others,omitempty"`
	// GivenUp means that somebody asked for that, and it had not landed.
	GivenUp bool `json:"given_up,omitempty"`
	// MayArrive is where the branch would have to stay for a push of the dead
	// process to move it still, at a remote where nothing else keeps it from it.
	MayArrive object.OID `json:"may_arrive,omitempty"`
	// Steps are those that follow it, with how they went; Motion means that it is nothing
	// but steps, and Landed that it began.
	Steps  []step.Step `json:"steps,omitempty"`
	Motion bool        `json:"motion,omitempty"`
	// Kept means that its journal stays in this clone until that is over.
	Kept bool `json:"kept,omitempty"`
	// Local says what became of the local branch; Hint is the command that
	// does by hand what was left undone there.
	Local string `json:"local,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// left are moves of an override that was given up, which its pushes may make still,
	// and missed those of one whose refs others have moved elsewhere.
	left, missed []event.Update
	expected     string // what --expect-head of it was
	// Again is the whole command that would land its change anew, in the worktree
	// that began it; empty where it has landed, or where that is not known here.
	Again string `json:"again,omitempty"`
}

// A Withdrawal is the event by which a landing came to be no more.
type Withdrawal struct {
	By     string     `json:"by"`
	Host   string     `json:"host,omitempty"`
	At     time.Time  `json:"at"` // by the clock of who did
	Reason string     `json:"reason"`
	Event  object.OID `json:"event"`
}

// String tells it in one sentence.
func (c Conclusion) String() string {
	if !c.Landed || len(c.Steps) == 0 {
		return c.string()
	}
	text := tellSteps(c.Steps)
	if c.GivenUp {
		text = "its steps are given up, " + text
	}
	if c.Motion {
		return fmt.Sprintf("operation %s was a motion of steps; %s", c.Operation, text)
	}
	if c.Gone {
		c.GivenUp = false
		return c.string() + "; " + text
	}
	return fmt.Sprintf("operation %s has landed %s on %s; %s", c.Operation, c.Commit.Short(), c.Branch.Branch(), text)
}

func (c Conclusion) string() string {
	switch {
	case c.Motion:
		return fmt.Sprintf("operation %s had died before its first step; it can no longer begin", c.Operation)
	case c.Override != nil:
		return c.overrideString()
	case !c.Landed && c.MayArrive != "" && !c.GivenUp:
		return fmt.Sprintf("operation %s has not landed, and no longer has its lease; a push of it that is still on its way could move %s as long as that is at %s",
			c.Operation, c.Branch.Branch(), c.MayArrive.Short())
	case !c.Landed && c.MayArrive != "":
		return fmt.Sprintf("operation %s is given up; a push of it that is still on its way could move %s as long as that is at %s, and git land reconcile would name it",
			c.Operation, c.Branch.Branch(), c.MayArrive.Short())
	case !c.Landed && c.Withdrawn != nil:
		w := c.Withdrawn
		return fmt.Sprintf("operation %s did not land: it was withdrawn by %s on %s, because: %s", c.Operation, w.By, w.At.UTC().Format("2006-01-02 15:04 MST"), w.Reason)
	case c.Already:
		return fmt.Sprintf("operation %s has landed %s on %s, and there was nothing to finish", c.Operation, c.Commit.Short(), c.Branch.Branch())
	case c.ByOthers:
		return fmt.Sprintf("operation %s had died, and others have brought %s to %s", c.Operation, c.Commit.Short(), c.Branch.Branch())
	case !c.Landed:
		return fmt.Sprintf("operation %s had died before it landed; it can no longer arrive", c.Operation)
	case c.Gone:
		return fmt.Sprintf("operation %s had died after it landed %s on %s; that branch was rewritten since, and does not have it any more",
			c.Operation, c.Commit.Short(), c.Branch.Branch())
	}
	return fmt.Sprintf("operation %s had died after it landed %s on %s; finished it", c.Operation, c.Commit.Short(), c.Branch.Branch())
}

// concludeDead brings the landings of this worktree that died to their end:
// what reached the authority is finished, what did not is made unable to. It waits
// for one that is under way, at most as long as patience says, and takes that off
// it. kept means that one of them stays, of which a push may still arrive, and moved are
// the heads that were expected by those that have landed and moved HEAD.
func concludeDead(ctx context.Context, l *ledger.Ledger, e Ending, patience *time.Duration) (kept bool, moved []string, err error) {
	list, err := ListUnfinished(l.Dir)
	if err != nil {
		return false, nil, err
	}
	for _, u := range list {
		// Neither a check nor an override stops a landing, nor a step, which may land itself.
		// Steps that follow no landing of this worktree are none of its business.
		if u.gitDir != l.Repo.Place() || u.Motion || (u.checking || u.Override || u.Stepping) && (u.Alive || u.Doubt != "") {
			continue
		}
		e.Operation = u.Operation
		c, err := concludeOne(ctx, l, e)
		if u.Override && err != nil && ctx.Err() == nil {
			if fault.ClassOf(err) != fault.Held {
				l.Notice("the override of operation %s, which died, is not ended yet: %v", u.Operation, err)
			}
			continue
		}
		for errors.Is(err, session.ErrAlive) && outlive(ctx, l, u.Operation, patience) {
			c, err = concludeOne(ctx, l, e)
		}
		if f, ok := errors.AsType[*fault.Error](err); ok && errors.Is(err, session.ErrAlive) {
			f.WithHint("run git land again with --timeout 10m to wait longer for it")
			err = errors.Join(f, ctx.Err())
		}
		if err != nil {
			return kept, moved, err
		}
		if c == nil {
			continue // it ended between the look and the lock
		}
		kept = kept || c.Kept
		if c.Landed && c.Local == localMoved {
			moved = append(moved, c.expected)
		}
		l.Notice("%s", c)
		if c.Hint != "" {
			l.Notice("the local branch was left where it is: %s; hint: %s", c.Local, c.Hint)
		}
	}
	return kept, moved, nil
}

// outlive waits until the process of a landing is gone, and reports whether that
// came within patience.
func outlive(ctx context.Context, l *ledger.Ledger, op ulid.ULID, patience *time.Duration) bool {
	start := time.Now()
	defer func() { *patience = max(0, *patience-time.Since(start)) }()
	for told, n := false, 0; ; n++ {
		left := *patience - time.Since(start)
		if left <= 0 || ledger.Pause(ctx, min(left, ledger.Backoff(n, time.Second/4))) != nil {
			return false
		}
		if alive, err := l.Dir.Alive(op); err == nil && !alive || errors.Is(err, session.ErrNoWitness) {
			return true
		}
		if !told && time.Since(start) > time.Second {
			told = true
			l.Notice("waiting for operation %s, which this worktree is landing already", op)
		}
	}
}

// concludeOne concludes the dead landing that has a journal here, and removes
// that, unless a push of it may still arrive. It returns nil when there is no such
// journal any more. With a reason the landing is given up, unless it has landed.
// The error is session.ErrAlive while it is under way in this clone.
func concludeOne(ctx context.Context, l *ledger.Ledger, e Ending) (*Conclusion, error) {
	op := e.Operation
	witness, err := l.Dir.Witness(op)
	if errors.Is(err, session.ErrAlive) {
		f := fault.New(fault.Held, "a landing of this clone is under way, operation %s", op).
			WithHint("wait for it, then run git land again")
		f.Err = session.ErrAlive
		return nil, f
	}
	if err != nil {
		return nil, err
	}
	j, err := loadJournal(l.Dir, op)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, witness.Remove()
	}
	if err == nil && !e.Dead {
		err = dead(l.Dir, j)
	}
	var c Conclusion
	if err == nil {
		c, err = concludeAt(ctx, l, j, e)
		l.Repo.Reread() // it may have moved HEAD
	}
	if err != nil {
		witness.Close()
		if c.Landed { // a step of it is to come
			return &c, err
		}
		return nil, err
	}
	if c.Kept = c.MayArrive != "" && !c.GivenUp; c.Kept {
		return &c, witness.Close()
	}
	if err := l.Dir.Journal().Remove(op); err != nil {
		return nil, err
	}
	err = witness.Remove()
	sweep(l)
	return &c, err
}

// dead refuses an operation that may live elsewhere: its journal came here with a
// copy of the clone, or its witness proves nothing.
func dead(dir session.Dir, j journal) error {
	why, err := dir.Doubt(j.Operation, j.Origin)
	if err != nil || why == "" {
		return err
	}
	return fault.New(fault.Held, "operation %s, of which there is a journal here, may still be under way: %s", j.Operation, why).
		WithHint("%s", forgetOrResume(dir, j.Operation)).
		WithFacts(map[string]any{"operation": j.Operation.String(), "verdict": session.Unknown, "comparison": why})
}

// concludeAt ends one dead landing at the authority to which it was made, which
// need not be the one that the user lands to now.
func concludeAt(ctx context.Context, l *ledger.Ledger, j journal, e Ending) (Conclusion, error) {
	from, reason := e.Session, e.Reason
	if j.checking() && reason == "" { // which the authority has nothing to do with
		c := Conclusion{Operation: j.Operation, Remote: j.Remote, Lease: j.Lease, Branch: j.Branch, Unit: j.Unit}
		if j.GitDir == l.Repo.Place() {
			c.Again = j.again(ctx, l)
		}
		return c, nil
	}
	if j.Remote != l.Remote || j.Address != l.Address() {
		other, err := ledger.OpenAt(l.Repo, j.Remote, j.Address, ledger.Options{Now: l.Now, Notice: l.Notice})
		if err != nil {
			return Conclusion{}, fault.New(fault.Usage, "operation %s was landing to %s and did not end: %w", j.Operation, j.Remote, err).
				WithHint("git remote add NAME URL   (of that repository; or, to forget the operation: %s)", fault.Command("rm", l.Dir.Journal().Path(j.Operation)))
		}
		l = other
	}
	if j.Override != nil {
		return concludeOverride(ctx, l, j, from, reason)
	}
	if !j.Motion.IsZero() {
		return concludeMotion(ctx, l, j, e)
	}
	s, err := newSequence(l, &j, from)
	if err != nil {
		return Conclusion{}, err
	}
	c, a, base, err := s.conclude(ctx, reason)
	c.expected = j.ExpectHead
	if err == nil && !c.Landed && j.GitDir == l.Repo.Place() {
		c.Again = j.again(ctx, l)
	}
	if err == nil && !c.Landed && (c.MayArrive == "" || c.GivenUp) {
		err = s.settle(ctx, reason)
	}
	if err != nil || !c.Landed {
		return c, err
	}
	if !c.Gone && j.GitDir == l.Repo.Place() {
		if err := followDead(ctx, l, j, &c, *a, base); err != nil { // which must not be in the way for ever
			c.Local, c.Hint = err.Error(), rebaseCommand(l, j.Branch)
		}
	}
	if len(j.Steps) == 0 {
		return c, nil
	}
	course := j.course(l, *a)
	course.Save = s.save
	return c, s.endSteps(ctx, course, e, &c)
}

// followDead brings the local side along after a landing that a dead process of
// this worktree had begun.
func followDead(ctx context.Context, l *ledger.Ledger, j journal, done *Conclusion, a attempt, base object.OID) error {
	c, err := j.change(ctx, l.Repo)
	if err != nil {
		return err
	}
	branch, err := l.Repo.HeadBranch(ctx)
	if err != nil {
		return err
	}
	s := &follower{l: l, change: c, target: j.Branch, base: base, commit: a.Commit, tree: a.Tree, operation: j.Operation}
	outcome, hint, moves := s.bring(ctx, branch)
	done.Local, done.Hint = outcome, hint
	return errors.Join(s.flush(ctx, "land: "+j.Unit, moves...), bringOthers(ctx, l, j, a))
}

// conclude ends one dead landing. After it returns no error nothing of the
// operation can still arrive, unless the conclusion says so. It returns the attempt that landed, if one did,
// and where the branch is.
func (s *sequence) conclude(ctx context.Context, reason string) (Conclusion, *attempt, object.OID, error) {
	j := s.journal
	c := Conclusion{Operation: j.Operation, Remote: s.l.Remote, Lease: j.Lease, Branch: j.Branch, Unit: j.Unit}
	if reason == "" {
		if err := s.resume(ctx); err != nil {
			return c, nil, "", err
		}
	}
	a, byOthers, err := s.outrun(ctx, reason)
	if err != nil {
		return c, nil, "", err
	}
	if a == nil {
		c.GivenUp = reason != ""
		c.MayArrive, err = s.mayArrive(ctx)
		return c, nil, "", err
	}
	v, err := s.l.Fetch(ctx, s.want)
	if err != nil {
		return c, nil, "", err
	}
	if c.ByOthers = byOthers; !byOthers {
		if v, err = completeRecord(ctx, s.l, s.want, v, *a); err != nil {
			return c, nil, "", err
		}
	}
	in, err := isIn(ctx, s.l, a.Commit, v.Base)
	c.Landed, c.Commit, c.Gone = true, a.Commit, !in
	return c, a, v.Base, err
}

// mayArrive is where the branch is, if a push of the landing could still move it
// from there: where refs move apart, and the intent had arrived.
func (s *sequence) mayArrive(ctx context.Context) (object.OID, error) {
	n := len(s.journal.Attempts)
	if n == 0 || !s.journal.Attempts[n-1].Apart {
		return "", nil
	}
	v, err := s.l.Fetch(ctx, s.want)
	if err != nil {
		return "", err
	}
	fate, err := s.l.Trace(ctx, v, s.journal.attempts())
	if err != nil || fate.Arrived == nil || v.Base != s.journal.Attempts[n-1].base(v.Branch) {
		return "", err
	}
	since := slices.IndexFunc(fate.Others, func(e event.Event) bool { return e.OID == fate.Arrived.OID })
	for _, e := range fate.Others[since:] {
		if e.By.TakenBack == s.journal.Landing {
			return "", nil
		}
	}
	return v.Base, nil
}

// resume finishes a landing that was announced, as long as it can be.
func (s *sequence) resume(ctx context.Context) error {
	if n := len(s.journal.Attempts); n == 0 || !s.journal.Attempts[n-1].Apart {
		return nil
	}
	v, err := s.l.Fetch(ctx, s.want)
	if err != nil || v.Problem != nil || !s.announced(v) {
		return err
	}
	_, err = s.finish(ctx)
	if errors.Is(err, errOvertaken) || errors.Is(err, errGone) {
		return nil // what stands at the authority decides the rest
	}
	return err
}

// bringOthers takes the other worktrees that have the target checked out along,
// where the landing has moved their HEAD and died before it came to their files.
func bringOthers(ctx context.Context, l *ledger.Ledger, j journal, a attempt) error {
	if !l.IsLocal() {
		return nil
	}
	_, others, err := otherWorktrees(ctx, l.Repo, j.Branch, j.Elsewhere)
	if err != nil {
		return err
	}
	from := l.Repo.Format.EmptyTree()
	if base := a.base(j.Branch); base != "" {
		commit, err := l.Repo.Commit(ctx, base)
		if err != nil {
			return err
		}
		from = commit.Tree
	}
	for _, w := range others {
		w.Refresh(ctx)
		// One that has followed already stays as it is.
		if err := w.MoveWorkTree(ctx, from, a.Tree, false); err != nil {
			l.Notice("the worktree %s could not follow: %v", w.Top, err)
		}
	}
	return nil
}
