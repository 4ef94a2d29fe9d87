package land

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/step"
)

// planSteps settles which steps follow the landing. It refuses before anything is pushed.
func (m *motion) planSteps(v ledger.View) (err error) {
	m.journal.Typed = m.r.Steps
	m.journal.Steps, err = stepsAfter(m.l, v, m.holds(v), m.r.Steps...)
	return err
}

// stepsAfter are the steps that follow a landing on v, those of the policy and then those
// that were typed. It refuses those whose commands nobody has let run here, and, under a
// lease of one's own, steps within steps; what they are it tells all the same.
func stepsAfter(l *ledger.Ledger, v ledger.View, own bool, typed ...policy.Step) ([]step.Step, error) {
	steps, err := step.New(v.Policy.Steps, typed...)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	if h := v.Hold(); h != nil && h.Steps != "" && own {
		return steps, fault.New(fault.Held, "this landing has steps (%s), and runs within a motion whose own are to come: %s", step.Names(steps), h.Steps).
			WithHint("%s; then land   (within one of those steps: land what no step follows, and have these be steps of the outer motion)", lease.StepsCommands(l, *h))
	}
	return steps, acceptedSteps(l, v.Policy)
}

// canEnd refuses a record that leaves no room for how the steps after it end, which is said
// on the same line once more.
func (j *journal) canEnd(record string) error {
	const outcome, end = 100, 8 << 10 // of each step; a reason, escaped, with who and when
	if need := len(record) + outcome*len(j.Steps) + end; len(j.Steps) > 0 && need > note.MaxLine {
		return fault.New(fault.Conflict, "the record of this landing has %d bytes, which leaves no room for how its steps end: a line may have %d", len(record), note.MaxLine).
			WithHint("have fewer checks, or shorter commands of them: what they are stands in the record")
	}
	return nil
}

// notYet is the fault of a landing that was made before, with commit, and whose steps are not
// done; nil where there is none such. The log is read for it where there is a reason to:
// there are steps here, the lease is held for some, or the record of the commit has them.
func (m *motion) notYet(ctx context.Context, v ledger.View, commit object.OID) error {
	if h := v.Hold(); len(m.r.Steps) == 0 && len(v.Policy.Steps) == 0 && (h == nil || h.Steps == "") {
		blob, err := m.l.Note(ctx, v.Records, commit)
		if err != nil || !slices.ContainsFunc(note.ParseRecords(blob), func(r note.Line[note.Record]) bool { return r.Err == nil && len(r.Value.Steps) > 0 }) {
			return err
		}
	}
	return notYet(ctx, m.l, v, commit)
}

func notYet(ctx context.Context, l *ledger.Ledger, v ledger.View, commit object.OID) error {
	landing, err := landingWith(ctx, l, v, commit)
	if err != nil || landing == nil {
		return err
	}
	m, err := step.Find(ctx, l, v, landing.By.Land.ID)
	resume := l.Command("git", "land", "resume", landing.By.Operation.String())
	switch {
	case err != nil:
		return err
	case m == nil && landing.Kind == event.Intent && landing.By.Land.Steps != "":
		return fault.New(fault.Failed, "the change is on the branch as %s, by a landing that was announced and did not end: steps of it are to come: %s",
			commit.Short(), landing.By.Land.Steps).WithHint("%s", resume)
	case m == nil || m.Ended != nil && !m.GivenUp:
		return nil
	}
	what, hint := "are to come", resume
	if m.Ended != nil {
		what, hint = "were given up", l.Command("git", "land", "log")+"   (it says why)"
	}
	return fault.New(fault.Failed, "the change has landed before, as %s, and steps of it %s: %s", commit.Short(), what, strings.Join(m.Open(), ", ")).
		WithHint("%s", hint)
}

// landingWith is the newest event of the landing that brought a commit to the branch, itself
// or by a merge; nil where none did.
func landingWith(ctx context.Context, l *ledger.Ledger, v ledger.View, commit object.OID) (*event.Event, error) {
	merge, err := l.Repo.BroughtBy(ctx, commit, v.Base)
	if err != nil {
		return nil, err
	}
	var found *event.Event
	err = lease.Walk(ctx, l, v, func(e event.Event) bool {
		if land := e.By.Land; land != nil && land.Branch == v.Branch && (land.Commit == commit || land.Commit == merge) {
			found = &e
		}
		return found == nil
	})
	return found, err
}

// stepWords are the options by which steps were typed.
func stepWords(steps []policy.Step) (words []string) {
	for _, s := range steps {
		words = append(words, "--step", s.Name+"="+s.Run.Text)
		if s.Check.Text != "" {
			words = append(words, "--step-check", s.Name+"="+s.Check.Text)
		}
	}
	return words
}

// acceptedSteps refuses steps of the policy whose commands nobody has let run in this
// clone.
func acceptedSteps(l *ledger.Ledger, team policy.Policy) error {
	var commands []policy.Command
	for _, s := range team.Steps {
		commands = append(commands, s.Run, s.Check)
	}
	left, err := policy.Unaccepted(l.Dir, commands...)
	if err != nil || len(left) == 0 {
		return err
	}
	return unaccepted(left, "steps of %s run in this clone only when its user has accepted their commands").
		WithHint("%s   (it accepts them)", l.Command("git", "land", "init", "--accept"))
}

// follow runs the steps after the landing, under the lease that it took, or the session
// brought. The journal stays as long as one of them is to come.
func (m *motion) follow(ctx context.Context) error {
	if len(m.journal.Steps) == 0 {
		return nil
	}
	c := m.journal.course(m.l, m.arrived)
	c.Root, c.Own, c.Hold = m.root, true, m.journal.Operation
	if m.root.IsZero() {
		c.Root, c.Own, c.Hold = m.brought.Root, false, m.journal.Hold
	}
	c.Save, c.Setting = m.write, m.r.Setting
	err := c.Run(ctx)
	m.result.Steps = m.journal.Steps
	if fault.ClassOf(err) == fault.Lost && !c.Unsaid { // whoever has the lease has them now
		return errors.Join(err, m.forget())
	}
	return err
}

// course is what follows the landing of j by its attempt a.
func (j *journal) course(l *ledger.Ledger, a attempt) *step.Course {
	return &step.Course{Ledger: l, Want: ledger.Want{Name: j.Lease, Branch: j.Branch}, Motion: j.Landing, Operation: j.Operation,
		Steps: j.Steps, Facts: step.Facts(a.Land, a.Record),
		End: func(ctx context.Context, v ledger.View, d *ledger.Draft) error {
			return endRecord(ctx, l, v, d, a.Record, step.Results(j.Steps), "")
		}}
}

// endRecord adds to a draft on v the landing's record once more, with how its steps
// ended; reason is why they were given up, if they were. Where refs cannot move together
// the record goes first: the chain decides whether they have ended.
func endRecord(ctx context.Context, l *ledger.Ledger, v ledger.View, d *ledger.Draft, record string, steps []note.Step, reason string) error {
	lines := note.ParseRecords([]byte(record))
	if len(lines) != 1 || lines[0].Err != nil {
		return fmt.Errorf("the record of the landing cannot be read")
	}
	r := lines[0].Value
	r.Steps, r.End = steps, &note.End{Reason: reason, Actor: d.Actor(), Time: d.Time()}
	text, err := note.EncodeLine(r)
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	blob, err := l.Note(ctx, v.Records, r.Commit)
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	if had := note.Standing(note.ParseRecords(blob), r.ID); had != nil && had.End != nil && had.End.Reason == reason && slices.Equal(had.Steps, steps) {
		return nil // a process that said so died before the chain did
	}
	notes, err := l.AppendNotes(ctx, v.Records, "steps after "+r.Commit.Short()+" on "+r.Branch.Branch(), []ledger.NoteLine{{On: r.Commit, Text: text}})
	if err != nil {
		return err
	}
	if err := l.Repo.Write(ctx, notes.Objects...); err != nil {
		return err
	}
	records, err := l.RecordsRef(v.Name)
	if err != nil {
		return err
	}
	move := git.Move{Ref: records, New: notes.Tip, Old: git.Was(v.Records)}
	if atomic, err := l.Atomic(); err != nil || atomic {
		d.Along(move)
		return err
	}
	out, err := l.Publish(ctx, ledger.Publication{Message: "land: record", Moves: []git.Move{move}})
	switch {
	case err != nil:
		return err
	case !out.Done:
		return fault.New(fault.Unreachable, "%s refused the record of %s: %w", l.Remote, r.Commit.Short(), out.Said)
	}
	l.Moved(v, []git.Move{move})
	return nil
}
