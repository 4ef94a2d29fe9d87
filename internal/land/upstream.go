package land

import (
	"context"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// onUpstream refuses to land on the usual target what is on a branch that follows
// another branch of the authority: from release/1.0 nobody lands on main by saying
// nothing. Whoever chose the target, by an option, a policy or configuration, is asked
// nothing. The fault is of class Conflict.
func onUpstream(ctx context.Context, l *ledger.Ledger, v ledger.View, c change) error {
	branch := c.branch
	if strings.HasPrefix(c.ref, "refs/heads/") {
		branch = object.Ref(c.ref)
	}
	upstream := upstreamOf(l, branch)
	if c.asked.Want.Branch != "" || upstream == "" || upstream == v.Branch {
		return nil
	}
	if p, err := l.HeadPolicy(ctx); err != nil || p.Target != "" {
		return err
	}
	if there, err := isThere(ctx, l, upstream); err != nil || !there {
		return err
	}
	onto := func(branch object.Ref) string {
		s := c.asked
		if s.Want.Branch = branch; c.kind != fromCommits && len(s.Messages) == 0 {
			s.Messages = []string{Message}
		}
		return withSelection(l, s.landing(), s)
	}
	return fault.New(fault.Conflict, "%s follows %s of %s, and nothing says that it is to land on %s", branch.Branch(), upstream.Branch(), l.Remote, v.Branch.Branch()).
		WithHint("%s   (or: %s; or, to be asked no more: %s)", onto(upstream), onto(v.Branch), fault.Command("git", "config", "land.onto", v.Branch.Branch())).
		WithFacts(map[string]any{"local_branch": branch, "upstream": upstream, "branch": v.Branch})
}

// upstreamOf is the branch of the authority that a local one follows, by way of other
// local ones too; "" where it follows none there.
func upstreamOf(l *ledger.Ledger, branch object.Ref) object.Ref {
	for range 10 { // or they follow each other
		if branch == "" {
			return ""
		}
		key := "branch." + branch.Branch() + "."
		merge, from := object.Ref(l.Repo.Config.Get(key+"merge")), l.Repo.Config.Get(key+"remote")
		switch {
		case !strings.HasPrefix(string(merge), "refs/heads/"):
			return ""
		case from == l.Remote:
			return merge
		case from != ".":
			return ""
		}
		branch = merge
	}
	return ""
}

// isThere reports whether the authority has the branch. It is asked only where git has
// seen it there.
func isThere(ctx context.Context, l *ledger.Ledger, branch object.Ref) (bool, error) {
	if !l.IsLocal() {
		tracked := object.Ref("refs/remotes/" + l.Remote + "/" + branch.Branch())
		if refs, err := l.Repo.Resolve(ctx, tracked); err != nil || refs[tracked] == "" {
			return false, err
		}
	}
	branches, err := l.Branches(ctx)
	return slices.Contains(branches, branch), err
}
