package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
)

// A Push is what git tells the pre-push hook, and what its session says.
type Push struct {
	Remote string // its name, or the URL where it has none
	URL    string
	// Updates are the refs of the remote that would move. The old objects are what
	// the remote advertised.
	Updates []event.Update
	// Session is where the token of the session is; asked for when it is needed.
	Session func() (session.Source, error)
	// Event is the event by which one of our own commands accounts for the push
	// (GIT_LEASE_EVENT); empty for anybody else's.
	Event object.OID
	// Override is the reason to push all the same, and Overriding whether one was
	// given at all.
	Override   string
	Overriding bool
	// Want says which lease is meant; its branch is the target.
	Want ledger.Want
}

// ReadPush reads git's lines, "<local ref> <local oid> <remote ref> <remote oid>"
// (githooks(5)). The local ref is whatever was typed, spaces included.
func ReadPush(in io.Reader) ([]event.Update, error) {
	var updates []event.Update
	err := lines(in, func(line string) error {
		var words [3]string
		for i := range words {
			cut := strings.LastIndexByte(line, ' ')
			if cut < 0 {
				return fmt.Errorf("git's line %q has fewer than four words", line)
			}
			line, words[i] = line[:cut], line[cut+1:]
		}
		u := event.Update{Ref: object.Ref(words[1])}
		var err error
		if u.Old, err = objectID(words[0]); err != nil {
			return err
		}
		u.New, err = objectID(words[2])
		updates = append(updates, u)
		return err
	})
	return updates, err
}

// Guard says why a push may not be made, or nil. It looks at the authority only
// for a protected branch that the push itself does not account for, and once for each. An
// override that is needed is written before it returns.
//
// The refusals are faults: Held for a lease that this session does not hold, Lost
// for one that it held, Usage for an override without a reason, Unreachable where
// the authority could not be asked, and those of the chain.
func Guard(ctx context.Context, l *ledger.Ledger, p Push) error {
	there, err := l.IsAt(ctx, p.Remote, p.URL)
	if err != nil || !there || l.IsLocal() {
		return err
	}
	if !slices.ContainsFunc(p.Updates, func(u event.Update) bool { return interesting(l, u.Ref) }) {
		return nil // tags, say
	}
	own, err := p.accounted(ctx, l)
	if err != nil {
		return err
	}
	looked := map[object.Ref]ledger.View{}
	keep, err := p.protected(ctx, l, own, looked)
	if err != nil {
		return err
	}
	var refused []event.Update
	var why error
	for _, u := range p.Updates {
		if accountedFor(own, u) {
			continue
		}
		if err := grows(ctx, l, u); err != nil {
			return err
		}
		if !keep.covers(u.Ref) {
			continue
		}
		if err := p.allowed(ctx, l, u, looked); err != nil {
			refused, why = append(refused, u), errors.Join(why, err)
		}
	}
	if why == nil || !p.Overriding {
		return why
	}
	return p.override(ctx, l, refused)
}

// Unchosen says what to do about a push where it cannot be told which repository
// decides: why is that. What could be protected anywhere is refused, by the lease.protect
// of each remote, else its target; all else goes. Where none of them is known every branch
// could be.
func Unchosen(ctx context.Context, repo *git.Repo, updates []event.Update, why error) error {
	policies, err := policy.NewReader(repo)
	if err != nil {
		return err
	}
	var patterns []string
	var heads []object.Ref
	for _, remote := range repo.Config.Remotes() {
		at := "refs/remotes/" + remote + "/"
		team, err := policies.At(ctx, at+"HEAD")
		if err != nil {
			return err
		}
		patterns = append(patterns, team.Protect...)
		if team.Target != "" {
			heads = append(heads, team.Target)
			continue
		}
		tracked, err := repo.SymbolicRef(ctx, object.Ref(at+"HEAD"))
		if err != nil {
			return err
		}
		if branch, known := strings.CutPrefix(string(tracked), at); known {
			heads = append(heads, object.Ref("refs/heads/"+branch))
		}
	}
	keep := protect(patterns, heads...)
	for _, u := range updates {
		ours := strings.HasPrefix(string(u.Ref), "refs/lease/") || strings.HasPrefix(string(u.Ref), "refs/notes/landing/") || u.Ref == "refs/notes/verification"
		if ours || keep.covers(u.Ref) || len(patterns)+len(heads) == 0 && strings.HasPrefix(string(u.Ref), "refs/heads/") {
			return why
		}
	}
	return nil
}

// interesting reports whether a ref could be protected at all.
func interesting(l *ledger.Ledger, ref object.Ref) bool {
	role, _ := l.RoleOf(ref)
	return role == ledger.Chain || role == ledger.Notes || role == ledger.Foreign && strings.HasPrefix(string(ref), "refs/heads/")
}

// protected is what lease.protect names, else the target and the branches that are under
// a lease, as far as this clone knows. The authority is asked which branch its HEAD is on
// where this clone has never heard of it, and where it has to be asked anyway: by then it
// may be another one. What was asked is in looked.
func (p Push) protected(ctx context.Context, l *ledger.Ledger, own []event.Event, looked map[object.Ref]ledger.View) (protection, error) {
	patterns, err := l.KnownProtect(ctx, p.Want)
	keep := protect(patterns)
	if err != nil || keep.chosen() {
		return keep, err
	}
	kept, err := l.KnownKept(ctx)
	if err != nil {
		return keep, err
	}
	if p.Want.Branch != "" { // that somebody has chosen
		keep.branches = append(kept, p.Want.Branch)
		return keep, nil
	}
	targets, err := l.KnownTargets(ctx)
	if err != nil {
		return keep, err
	}
	keep.branches = targets
	if len(targets) > 0 && !slices.ContainsFunc(p.Updates, func(u event.Update) bool { return keep.covers(u.Ref) && !accountedFor(own, u) }) {
		keep.branches = append(kept, targets...)
		return keep, nil
	}
	v, err := l.FetchKeeper(ctx, p.Want)
	if err != nil {
		return keep, unknown(err, targets)
	}
	looked[v.Branch] = v
	keep.branches = append(kept, v.Branch)
	return keep, nil
}

// unknown says of a failure to ask the authority what hangs on it.
func unknown(err error, branches []object.Ref) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Class == fault.Unreachable && len(branches) > 0 {
		f.What = fmt.Sprintf("%s is protected, and whether its lease may be used is not known: %s", branches[0].Branch(), f.What)
	}
	return err
}

// grows refuses to delete or rewrite what is ours.
func grows(ctx context.Context, l *ledger.Ledger, u event.Update) error {
	role, _ := l.RoleOf(u.Ref)
	switch {
	case role != ledger.Chain && role != ledger.Notes || u.Old == "":
		return nil
	case u.New == "":
		return fault.New(fault.Held, "%s is what everybody relies on, and is never deleted", u.Ref).WithHint("git land reconcile")
	}
	if c, err := l.Repo.Commit(ctx, u.New); err == nil && slices.Contains(c.Parents, u.Old) {
		return nil // without a process
	}
	in, err := l.Repo.IsAncestor(ctx, u.Old, u.New)
	if err == nil && !in {
		err = fault.New(fault.Held, "%s only grows, and %s does not descend from %s, which %s has", u.Ref, u.New.Short(), u.Old.Short(), l.Remote).
			WithHint("git land reconcile")
	}
	return err
}

// accounted is the event by which the push says itself what moves, if it is of one
// of our commands.
func (p Push) accounted(ctx context.Context, l *ledger.Ledger) ([]event.Event, error) {
	if p.Event == "" {
		return nil, nil
	}
	o, err := l.Repo.Object(ctx, string(p.Event))
	if errors.Is(err, git.ErrNotFound) {
		return nil, nil // another repository's
	}
	if err != nil {
		return nil, err
	}
	e, err := event.Parse(l.Repo.Format, o)
	if err != nil {
		return nil, nil // it proves nothing then
	}
	return []event.Event{e}, nil
}

func accountedFor(own []event.Event, u event.Update) bool {
	return slices.ContainsFunc(own, func(e event.Event) bool { return names(e, u) })
}

// names reports whether e accounts for an update. The old value is not looked at:
// where somebody was faster, the push's own expectation fails, and that has to be
// told apart from a refusal here.
func names(e event.Event, u event.Update) bool {
	if land := e.By.Land; land != nil && (e.Kind == event.Land || e.Kind == event.Intent) {
		return land.Branch == u.Ref && land.Commit == u.New
	}
	return slices.ContainsFunc(e.By.Updates, func(o event.Update) bool { return o.Ref == u.Ref && o.New == u.New })
}

// rewinds reports whether a branch would lose what it has by u, as far as this clone
// has what it is at.
func rewinds(ctx context.Context, repo *git.Repo, u event.Update) (bool, error) {
	if u.Old == "" || u.New == "" {
		return false, nil
	}
	in, err := repo.IsAncestor(ctx, u.Old, u.New)
	if errors.Is(err, git.ErrNotFound) {
		err = nil
	}
	return !in && err == nil, err
}

// wayOn is the command by which a protected branch moves as u has it, and a second one
// where a landing could bring it there: not where the branch is begun, rewound or deleted.
// target is where git land goes by itself; command makes a command line.
func wayOn(ctx context.Context, repo *git.Repo, u event.Update, target object.Ref, command func(...string) string) (string, error) {
	back, err := rewinds(ctx, repo, u)
	if err != nil {
		return "", err
	}
	var rewrite []object.Ref
	if back {
		rewrite = append(rewrite, u.Ref)
	}
	past := command(lease.OverrideWords("", "WHY", []event.Update{u}, rewrite)...)
	words := []string{"git", "land"}
	switch {
	case u.New == "" || back || u.Old == "" && u.Ref != target:
		return past + "   (past the lease and on the record: say why in place of WHY)", nil
	case u.Ref != target:
		words = append(words, "--onto", u.Ref.Branch())
	}
	return command(words...) + "   (or, past the lease and on the record: " + past + ")", nil
}

// allowed asks the authority whether this session may move a protected branch.
func (p Push) allowed(ctx context.Context, l *ledger.Ledger, u event.Update, looked map[object.Ref]ledger.View) error {
	var err error
	v, known := looked[u.Ref]
	if !known {
		if v, err = lease.Keeper(ctx, l, p.Want, u); err != nil {
			return unknown(err, []object.Ref{u.Ref})
		}
		looked[u.Ref] = v
	} else if v, err = lease.Begins(ctx, l, v, u); err != nil {
		return err
	}
	if v.Problem != nil {
		return v.Problem
	}
	from, err := p.Session()
	if err != nil {
		return err
	}
	have, err := from.Load()
	if err != nil && !errors.Is(err, session.ErrNoToken) {
		return err
	}
	if lease.Owns(have.Root, v.Tip) {
		return nil
	}
	end, err := lease.Ending(ctx, l, v, have.Root)
	if err != nil {
		return err
	}
	if end != nil {
		if f := end.Lost(l); f != nil {
			return f
		}
	}
	state := "nobody holds it, which is no permission"
	if h := v.Hold(); h != nil {
		state = "it is held by " + lease.Describe(*h, l.Now())
	} else if v.Phase() == event.Frozen {
		state = "it is frozen"
	}
	target := p.Want.Branch
	if target == "" {
		if target, err = l.KnownTarget(ctx); err != nil {
			return err
		}
	}
	hint, err := wayOn(ctx, l.Repo, u, target, l.Command)
	if err != nil {
		return err
	}
	return fault.New(fault.Held, "%s is protected by the lease %s, and this session does not hold it: %s", u.Ref.Branch(), v.Name, state).
		WithHint("%s", hint)
}

// override writes down that, and why, refs move past the lease.
func (p Push) override(ctx context.Context, l *ledger.Ledger, updates []event.Update) error {
	const again = "GIT_LEASE_OVERRIDE='WHY' git push ...   (say why in place of WHY)"
	switch {
	case strings.TrimSpace(p.Override) == "":
		return fault.New(fault.Usage, "GIT_LEASE_OVERRIDE is empty: a push past the lease is on the record, with a reason").WithHint(again)
	case lease.Stands(p.Override):
		return fault.New(fault.Usage, "GIT_LEASE_OVERRIDE: %q only stands for the reason of a push past the lease, which is on the record", p.Override).WithHint(again)
	}
	var rewrite []object.Ref
	for _, u := range updates {
		if back, err := rewinds(ctx, l.Repo, u); err != nil {
			return err
		} else if back {
			rewrite = append(rewrite, u.Ref)
		}
	}
	done, err := lease.Override(ctx, l, lease.Overriding{Want: p.Want, Reason: p.Override, Updates: updates, Rewrite: rewrite, Announce: true})
	if err == nil {
		e := done.Event
		l.Notice("operation %s has announced that this push goes past the lease %s: %s", e.By.Operation, e.Name, e.By.Reason)
		// Git tells a hook neither of --dry-run nor how the push ends.
		l.Notice("if nothing is pushed (--dry-run, or %s refuses), nothing has to be done: %s will say that the branch does not show it",
			l.Remote, l.Command("git", "land", "log"))
		return nil
	}
	if fault.ClassOf(err) == fault.Usage { // it belongs to the logs of several leases
		return err
	}
	return fault.New(fault.Unreachable, "the override could not be written, so nothing is pushed: %w", err).
		WithHint("%s   (event and refs in one push)", l.Command(lease.OverrideWords("", p.Override, updates, rewrite)...))
}
