package ledger

import (
	"cmp"
	"context"
	"slices"

	"gitland/internal/object"
	"gitland/internal/policy"
)

// choose says which lease and which branch w means, by the policies in this clone:
// the target is what the policy at headAt says, a ref or an id, else the branch that
// head gives; the lease is what the policy on the target says, else has the target's
// name. The user's own configuration stands in for both policies.
func (l *Ledger) choose(ctx context.Context, w Want, headAt string, head func(context.Context) (object.Ref, error)) (Want, error) {
	return l.chooseAt(ctx, w, headAt, head, func(branch object.Ref) string {
		if l.IsLocal() {
			return string(branch)
		}
		return l.mirror("heads/" + component(branch.Branch()))
	})
}

// chooseAt is choose with the commits of the branches at other places.
func (l *Ledger) chooseAt(ctx context.Context, w Want, headAt string, head func(context.Context) (object.Ref, error), at func(branch object.Ref) string) (Want, error) {
	if w.Branch == "" {
		p, err := l.policies.At(ctx, headAt)
		if err != nil {
			return w, err
		}
		if w.Branch = p.Target; w.Branch == "" {
			if w.Branch, err = head(ctx); err != nil || w.Branch == "" {
				return w, err
			}
		}
	}
	if w.Name == "" {
		p, err := l.policies.At(ctx, at(w.Branch))
		if err != nil {
			return w, err
		}
		w.Name = cmp.Or(p.Lease, w.Branch.Branch())
	}
	return w, nil
}

// tellProblem says, where a policy was asked for what nobody chose, that not all of it
// is understood: what is not may have been the answer.
func (l *Ledger) tellProblem(ctx context.Context, w Want, v View) error {
	team := v.Policy
	if w.Branch == "" && team.Problem == nil {
		var err error
		if team, err = l.HeadPolicy(ctx); err != nil {
			return err
		}
	}
	if team.Problem != nil && (w.Branch == "" || w.Name == "") {
		l.once("%s", team.Problem.What)
	}
	return nil
}

// PolicyIn is the policy that a tree has, with the user's own where that says nothing.
func (l *Ledger) PolicyIn(ctx context.Context, tree object.OID) (policy.Policy, error) {
	return l.policies.In(ctx, tree)
}

// HeadPolicy is the policy at the authority's HEAD, as far as this clone has heard.
func (l *Ledger) HeadPolicy(ctx context.Context) (policy.Policy, error) {
	return l.policies.At(ctx, l.headAt())
}

// Expected is the policy on the target that w means, as far as this clone has heard.
func (l *Ledger) Expected(ctx context.Context, w Want) (policy.Policy, error) {
	if w.Name == "" {
		w.Name = "-" // which is not asked for
	}
	w, err := l.choose(ctx, w, l.headAt(), l.knownHead)
	if err != nil {
		return policy.Policy{}, err
	}
	if w.Branch == "" {
		return l.policies.At(ctx, "")
	}
	return l.KnownPolicy(ctx, w.Branch)
}

// KnownPolicy is the policy on the branch, as far as this clone has heard.
func (l *Ledger) KnownPolicy(ctx context.Context, branch object.Ref) (policy.Policy, error) {
	if l.IsLocal() {
		return l.policies.At(ctx, string(branch))
	}
	return l.policies.At(ctx, l.mirror("heads/"+component(branch.Branch())))
}

// KnownProtect are the patterns of lease.protect on the target that w means, as far as
// this clone has heard: from us, and from git, which may have fetched since.
func (l *Ledger) KnownProtect(ctx context.Context, w Want) ([]string, error) {
	p, err := l.Expected(ctx, w)
	if err != nil || l.IsLocal() {
		return p.Protect, err
	}
	if w.Branch == "" {
		if w.Branch, err = l.KnownTarget(ctx); err != nil || w.Branch == "" {
			return p.Protect, err
		}
	}
	fetched, err := l.policies.At(ctx, "refs/remotes/"+l.Remote+"/"+w.Branch.Branch())
	return slices.Concat(p.Protect, fetched.Protect), err
}
