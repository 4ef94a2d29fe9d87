package land

import (
	"context"
	"io"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/verify"
)

// A VerifyRequest asks for a check of what would land.
type VerifyRequest struct {
	Selection
	Check   string // "" is DefaultCheck
	Command string
	Stderr  io.Writer // where the check's output goes as it runs
	Environ []string  // the check's, before what verify takes away
}

// Verify runs a check on the very tree that would land, and records what it
// found. published tells why the verification is not at the authority yet; it
// is kept here, counts here, and goes out later. A verification that failed is
// no error.
func Verify(ctx context.Context, l *ledger.Ledger, r VerifyRequest) (v note.Verification, published, err error) {
	p, unit, err := prospect(ctx, l, r.Selection)
	if err != nil {
		return v, nil, err
	}
	want := note.Want{Check: nonEmpty(r.Check, DefaultCheck), Command: r.Command}
	id, done := watched(l)
	defer done()
	return runCheck(ctx, l, p, checkRequest{want: want, unit: unit, output: r.Stderr, environ: r.Environ, id: id})
}

// prospect plans a landing that nobody has asked for yet.
func prospect(ctx context.Context, l *ledger.Ledger, s Selection) (plan, string, error) {
	id, done := watched(l)
	defer done()
	c, err := readChange(ctx, l.Repo, s.Paths, id.String())
	if err != nil {
		return plan{}, "", err
	}
	c.drop()
	view, err := l.Fetch(ctx, s.Want)
	if err != nil {
		return plan{}, "", err
	}
	p, err := makePlan(ctx, l, view, c)
	unit := s.Unit
	if unit == "" && c.branch != view.Branch {
		unit = c.branch.Branch() // a verification without a unit says nothing of one
	}
	return p, event.CleanText(unit, event.MaxText), err
}

type checkRequest struct {
	want    note.Want
	unit    string
	output  io.Writer
	environ []string
	id      ulid.ULID
}

func runCheck(ctx context.Context, l *ledger.Ledger, p plan, r checkRequest) (v note.Verification, published, err error) {
	v, err = verify.Run(ctx, l, verify.Request{Tree: p.tree, Base: p.view.Base, Check: r.want.Check, Command: r.want.Command,
		Unit: r.unit, ID: r.id.String(), Setup: l.Repo.Config.Get("land.verify.setup"), Output: r.output, Environ: r.environ})
	if err != nil {
		return v, nil, err
	}
	published, err = l.Record(ctx, ledger.Want{Name: p.view.Name, Branch: p.view.Branch}, v)
	return v, published, err
}

// A RecordRequest records what another system found.
type RecordRequest struct {
	Selection
	Verdict note.Verdict
	Check   string
	Tree    object.OID // "" is the tree that would land
}

// RecordVerdict records a verdict that was found elsewhere, with no command.
// What it returns is as with Verify.
func RecordVerdict(ctx context.Context, l *ledger.Ledger, r RecordRequest) (v note.Verification, published, err error) {
	want := r.Want
	v = note.Verification{ID: l.NewID(), Check: nonEmpty(event.CleanText(r.Check, event.MaxText), DefaultCheck), Verdict: r.Verdict,
		Tree: r.Tree, Unit: event.CleanText(r.Unit, event.MaxText), Host: l.Host, Time: l.Now()}
	if r.Tree == "" {
		p, unit, err := prospect(ctx, l, r.Selection)
		if err != nil {
			return v, nil, err
		}
		want = ledger.Want{Name: p.view.Name, Branch: p.view.Branch}
		v.Tree, v.Base, v.Unit = p.tree, p.view.Base, unit
	} else if len(r.Tree) != 2*l.Repo.Format.Size() {
		return v, nil, fault.New(fault.Usage, "%s is no object id of this repository, which uses %s", r.Tree, l.Repo.Format)
	}
	if v.Actor, err = l.Repo.Ident(); err != nil {
		return v, nil, err
	}
	published, err = l.Record(ctx, want, v)
	return v, published, err
}
