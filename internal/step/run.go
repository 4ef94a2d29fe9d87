package step

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// JournalFormat is the format of the journal of a motion that lands nothing. It stands
// among those of landings, of format 1, and of overrides, of format 2.
const JournalFormat = 3

// A Journal is what a motion that lands nothing writes down before its first side effect.
// Its first fields are those of every journal of this clone.
type Journal struct {
	Format    int            `json:"format"`
	Operation ulid.ULID      `json:"operation"`
	Origin    session.Origin `json:"origin"`
	GitDir    string         `json:"git_dir"`
	Remote    string         `json:"remote"`
	Address   string         `json:"address"`
	Lease     string         `json:"lease"`
	Branch    object.Ref     `json:"branch"`
	Unit      string         `json:"unit"` // the purpose
	// Token is the root of a lease that it took itself; empty under one that a session
	// had taken over with it, whose operation is Hold.
	Token string    `json:"token,omitempty"`
	Hold  ulid.ULID `json:"hold"`
	// Motion is the id of it, and Land and Record the landing that it follows, where that
	// was begun in another clone.
	Motion ulid.ULID      `json:"motion"`
	Land   *event.Landing `json:"land,omitempty"`
	Record string         `json:"record,omitempty"`
	Steps  []Step         `json:"steps"`
}

// A Running is a motion that lands nothing.
type Running struct {
	Want    ledger.Want
	Purpose string
	Waiting lease.Waiting
	Asking  session.Root // as that of lease.Acquisition
	Steps   []Step
	Taken   func(lease.Grant) // told once the lease is taken; may be nil
	Setting
}

// Run takes a lease, runs the steps under it, and gives it back after the last one. The
// errors are those of lease.Acquire, before which nothing is run, and of Course.Run.
func Run(ctx context.Context, l *ledger.Ledger, r Running) (steps []Step, err error) {
	v, err := l.Fetch(ctx, r.Want) // the journal names lease and branch
	if err != nil {
		return nil, err
	}
	root := session.NewRoot()
	j, witness, err := Begin(l, v, r.Steps)
	if err != nil {
		return nil, err
	}
	j.Motion, j.Hold, j.Token, j.Unit = j.Operation, j.Operation, root.Hex(), r.Purpose
	over := false
	defer func() {
		if over {
			err = errors.Join(err, l.Dir.Journal().Remove(j.Operation), witness.Remove())
		} else {
			err = errors.Join(err, witness.Close())
		}
	}()
	save := func() error { return l.Dir.Journal().Write(j.Operation, j) }
	if err := save(); err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	want := ledger.Want{Name: v.Name, Branch: v.Branch}
	grant, err := lease.Acquire(ctx, l, lease.Acquisition{Want: want, Root: root, Operation: j.Operation, Purpose: r.Purpose,
		Waiting: r.Waiting, Asking: r.Asking, Motion: j.Operation, Steps: Names(r.Steps)})
	if err != nil {
		if over = !ledger.IsUnsettled(err); !over {
			err = lease.NotKnown(grant, err, l.Command("git", "land", "resume", j.Operation.String()))
		}
		return nil, err
	}
	if r.Taken != nil {
		r.Taken(grant)
	}
	c := &Course{Ledger: l, Want: want, Motion: j.Motion, Operation: j.Operation, Hold: j.Hold, Root: root, Own: true,
		Steps: j.Steps, Save: save, Setting: r.Setting}
	err = c.Run(ctx)
	// What is left of a motion whose lease was taken off it is whose it is now.
	over = err == nil || fault.ClassOf(err) == fault.Lost && !c.Unsaid
	return j.Steps, err
}

// Begin makes the journal of a motion's steps at the authority as v shows it, which is not
// on disk yet, and locks its witness.
func Begin(l *ledger.Ledger, v ledger.View, steps []Step) (Journal, *session.Witness, error) {
	j := Journal{Format: JournalFormat, Operation: l.NewID(), GitDir: l.Repo.Place(), Remote: l.Remote, Address: l.Address(),
		Lease: v.Name, Branch: v.Branch, Steps: steps}
	witness, err := l.Dir.Witness(j.Operation)
	if err == nil {
		j.Origin, err = l.Dir.Origin(j.Operation)
	}
	return j, witness, err
}

// Facts are the variables that tell the commands of steps which landing they follow.
func Facts(land event.Landing, record string) []string {
	return []string{"GIT_LAND_UNIT=" + land.Unit, "GIT_LAND_BRANCH=" + land.Branch.Branch(), "GIT_LAND_BASE=" + string(land.Base),
		"GIT_LAND_COMMIT=" + string(land.Commit), "GIT_LAND_RECORD=" + record}
}

// dir is where the commands of steps run: the top of the worktree, or the repository
// where there is none.
func dir(l *ledger.Ledger) string {
	if l.Repo.Top != "" {
		return l.Repo.Top
	}
	return l.Repo.GitDir
}
