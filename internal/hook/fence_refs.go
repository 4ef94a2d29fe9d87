package hook

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// ReadUpdates reads what git tells these hooks, "<old> <new> <ref>" a line
// (githooks(5)). Lines about refs outside refs/, such as HEAD, which git also
// hands over, are left out. An old or new value that is a symbolic ref (git 2.46)
// is an error for a branch, a lease or notes; git remote set-head writes others.
func ReadUpdates(in io.Reader) ([]event.Update, error) {
	var updates []event.Update
	err := lines(in, func(line string) error {
		old, rest, _ := strings.Cut(line, " ")
		new, name, _ := strings.Cut(rest, " ")
		if !strings.HasPrefix(name, "refs/") {
			return nil
		}
		kept := strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/lease/") || strings.HasPrefix(name, "refs/notes/")
		if !kept && (strings.HasPrefix(old, "ref:") || strings.HasPrefix(new, "ref:")) {
			return nil
		}
		u := event.Update{Ref: object.Ref(name)} // git has checked it; a name that is odd to us is no ref of ours
		var err error
		if u.Old, err = objectID(old); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if u.New, err = objectID(new); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		updates = append(updates, u)
		return nil
	})
	return updates, err
}

// look takes what would change from what git lists, and reads the refs.
func (f *fence) look(ctx context.Context, updates []event.Update) error {
	head, err := f.l.Repo.HeadBranch(ctx)
	if err != nil {
		return err
	}
	patterns, err := f.l.KnownProtect(ctx, ledger.Want{})
	if err != nil {
		return err
	}
	target, err := f.l.KnownTarget(ctx)
	if err != nil {
		return err
	}
	f.keep, f.target = protect(patterns, head, target), cmp.Or(target, head)
	if err := f.read(ctx, updates); err != nil {
		return err
	}
	for _, u := range updates {
		if target, aliased := f.alias[u.Ref]; aliased && f.stage == Received {
			u.Ref = target // which is what a server moves, or deletes
		}
		if _, twice := f.moves[u.Ref]; twice {
			return fault.New(fault.Held, "%s is named twice in one push", u.Ref).WithHint("git push --force-with-lease ...   (once for each ref)")
		}
		was := f.now[u.Ref]
		switch {
		case f.stage == Prepared && u.New == "":
			// Packing refs deletes loose ones; deletions that are pushed come by
			// pre-receive.
			f.gone[u.Ref] = true
			continue
		case u.New == was && u.New != "": // a deletion is judged by the name: by then it may be there
			continue
		case f.stage == Prepared && u.Old == "":
			u.Old = was // whatever it is
		case f.stage == Prepared && u.Old != was:
			// It will be refused on its own: git 2.51 and newer list it none the less.
			continue
		}
		f.moves[u.Ref] = u
	}
	return nil
}

// maxNames bounds how many refs are asked for by name: all names stand in one
// command line.
const maxNames = 500

// read reads the chains' refs, and those that the updates name.
func (f *fence) read(ctx context.Context, updates []event.Update) error {
	names := []string{f.l.Leases()}
	for _, u := range updates {
		names = append(names, string(u.Ref))
	}
	if len(names) > maxNames {
		names = nil // all of them
	}
	refs, err := f.l.Repo.Refs(ctx, names...)
	if err != nil {
		return err
	}
	f.now = refs
	if f.stage == Received {
		if f.alias, err = f.l.Repo.SymbolicRefs(ctx); err != nil {
			return err
		}
		for _, target := range f.alias {
			if _, err := f.at(ctx, target); err != nil {
				return err
			}
		}
	}
	for ref := range refs {
		if role, _ := f.l.RoleOf(ref); role == ledger.Chain && refs[ref] != "" {
			f.chain = append(f.chain, ref)
		}
	}
	for _, u := range updates {
		if _, known := refs[u.Ref]; !known {
			refs[u.Ref] = "" // it is not there
		}
	}
	return nil
}

// at is where a ref is now.
func (f *fence) at(ctx context.Context, ref object.Ref) (object.OID, error) {
	if oid, known := f.now[ref]; known {
		return oid, nil
	}
	refs, err := f.l.Repo.Refs(ctx, string(ref))
	if err == nil {
		f.now[ref] = refs[ref]
	}
	return refs[ref], err
}
