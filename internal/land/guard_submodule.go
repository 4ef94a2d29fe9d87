package land

import (
	"context"
	"slices"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// A pin is a commit of a submodule that would land.
type pin struct {
	path    string
	commits []object.OID
	added   bool // where there was no submodule before
}

// guardSubmodules refuses a submodule that whoever gets the landing could not check out:
// one that .gitmodules does not name, or at a commit that its remote lacks.
func (p *plan) guardSubmodules(ctx context.Context, l *ledger.Ledger, diffs [][]git.Change) error {
	pins := pinned(diffs)
	if err := p.guardUnnamed(ctx, l, pins); err != nil {
		return err
	}
	for _, pin := range pins {
		missing, err := l.Repo.Unpushed(ctx, pin.path, pin.added, pin.commits...)
		if err != nil {
			return err
		}
		if missing != "" {
			return fault.New(fault.Conflict, "the submodule %s is at %s, which its remote does not have, so that nobody else could check it out", pin.path, missing.Short()).
				WithHint("%s   (or, where others get it some other way: %s)", fault.Command("git", "-C", pin.path, "push"), p.allowing(l, GuardSubmodule))
		}
	}
	return nil
}

// pinned are the submodules of which diffs bring commits, in order.
func pinned(diffs [][]git.Change) []*pin {
	var pins []*pin
	for _, diff := range diffs {
		for _, d := range diff {
			if !d.IsSubmodule() {
				continue
			}
			i := slices.IndexFunc(pins, func(p *pin) bool { return p.path == d.Path })
			if i < 0 {
				i = len(pins)
				pins = append(pins, &pin{path: d.Path})
			}
			pins[i].commits = append(pins[i].commits, d.New)
			pins[i].added = pins[i].added || d.OldMode != d.NewMode
		}
	}
	return pins
}

// guardUnnamed refuses a repository inside of this one that would land as a reference to
// its commit while the tree that lands does not say where that is to be had.
func (p *plan) guardUnnamed(ctx context.Context, l *ledger.Ledger, pins []*pin) error {
	pins = slices.DeleteFunc(slices.Clone(pins), func(p *pin) bool { return !p.added })
	if len(pins) == 0 {
		return nil
	}
	named, err := l.Repo.Submodules(ctx, p.tree)
	if err != nil {
		return fault.New(fault.Conflict, ".gitmodules, as it would land, cannot be read: %w", err).
			WithHint("git config --file .gitmodules --list   (until it can)")
	}
	lands, err := l.Repo.DiffTrees(ctx, p.baseTree, p.tree) // a later commit may have taken it away again
	if err != nil {
		return err
	}
	for _, pin := range pins {
		if slices.Contains(named, pin.path) || !slices.ContainsFunc(lands, func(d git.Change) bool { return d.Path == pin.path && d.IsSubmodule() }) {
			continue
		}
		f := fault.New(fault.Conflict, "%s is a repository of its own, and would land as a reference to it that nobody else can follow: .gitmodules does not name it", pin.path)
		here := l.Repo.SubmodulesHere(ctx)
		switch {
		case slices.Contains(here, pin.path) && p.change.kind == fromPaths && p.change.asked.Paths != nil:
			s := p.change.asked
			s.Paths = append(slices.Clone(s.Paths), pathspecs(l.Repo, []string{".gitmodules"})...)
			f.Hint = withSelection(l, s.landing(), s)
		case slices.Contains(here, pin.path):
			f.Hint = fault.Command("git", "add", "--", ".gitmodules")
		default:
			f.Hint = fault.Command("git", "submodule", "add", "URL", pin.path)
		}
		return f.WithHint("%s   (or, where it is meant so: %s)", f.Hint, p.allowing(l, GuardSubmodule))
	}
	return nil
}
