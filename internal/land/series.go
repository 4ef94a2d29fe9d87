package land

import (
	"context"
	"slices"
	"unicode/utf8"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// A series is the commits that land.
type series struct {
	tip     object.OID
	count   int
	objects []object.Object // not written yet
}

// commits builds the commits that land.
func (p *plan) commits(ctx context.Context, l *ledger.Ledger, text string) (series, error) {
	switch {
	case p.change.kind != fromCommits:
		return p.commit(ctx, l, text)
	case p.forward:
		return series{tip: p.change.head, count: len(p.stack)}, nil
	}
	return p.rebase(ctx, l)
}

// commit makes the one commit of a change that has none yet. Git is asked to
// make it where it has to sign or to encode; otherwise it is one of the objects
// that are all written by one process.
func (p *plan) commit(ctx context.Context, l *ledger.Ledger, text string) (series, error) {
	var parents []object.OID
	if p.view.Base != "" {
		parents = []object.OID{p.view.Base}
	}
	config := l.Repo.Config
	sign, err := config.Bool("commit.gpgsign", false)
	if err != nil {
		return series{}, err
	}
	if encoding := config.Get("i18n.commitencoding"); sign || encoding != "" || !utf8.ValidString(text) {
		tip, err := l.Repo.CommitTree(ctx, git.NewCommit{Tree: p.tree, Parents: parents, Message: text, Sign: sign})
		return series{tip: tip, count: 1}, err
	}
	author, err := l.Repo.Author()
	if err != nil {
		return series{}, err
	}
	stamp, err := l.Repo.Stamp(l.Now())
	if err != nil {
		return series{}, err
	}
	o := l.Repo.Format.New(object.Commit, object.CommitData{Tree: p.tree, Parents: parents,
		Author: author, Committer: stamp, Message: text}.Encode())
	return series{tip: o.OID, count: 1, objects: []object.Object{o}}, nil
}

// rebase writes the stack anew on the base. Author, dates and message stay as
// they are; a signature does not, since it would not match.
func (p *plan) rebase(ctx context.Context, l *ledger.Ledger) (series, error) {
	stamp, err := l.Repo.Stamp(l.Now())
	if err != nil {
		return series{}, err
	}
	s, tree := series{tip: p.view.Base}, p.baseTree
	for _, c := range p.stack {
		next, err := p.replay(ctx, l, c, tree)
		if err != nil {
			return s, err
		}
		if next == tree {
			continue // the target has this one already
		}
		commit, err := l.Repo.Commit(ctx, c.OID)
		if err != nil {
			return s, err
		}
		commit.Tree, commit.Committer = next, stamp
		commit.Parents = nil
		if s.tip != "" {
			commit.Parents = []object.OID{s.tip}
		}
		commit.Extra = slices.DeleteFunc(commit.Extra, func(h object.Header) bool {
			return h.Key == "gpgsig" || h.Key == "gpgsig-sha256"
		})
		o := l.Repo.Format.New(object.Commit, commit.Encode())
		s.objects = append(s.objects, o)
		s.tip, tree = o.OID, next
		s.count++
	}
	return s, nil
}

// replay is the tree of applying one commit to another tree.
func (p *plan) replay(ctx context.Context, l *ledger.Ledger, c git.RevListEntry, onto object.OID) (object.OID, error) {
	if len(c.Parents) > 1 {
		return "", fault.New(fault.Conflict, "%s is a merge, which cannot be rebased as it is onto %s", c.OID.Short(), p.view.Branch.Branch()).
			WithHint("%s", rebaseCommand(l, p.view.Branch))
	}
	commit, err := l.Repo.Commit(ctx, c.OID)
	if err != nil {
		return "", err
	}
	before := l.Repo.Format.EmptyTree()
	if len(c.Parents) == 1 {
		parent, err := l.Repo.Commit(ctx, c.Parents[0])
		if err != nil {
			return "", err
		}
		before = parent.Tree
	}
	tree, err := l.Repo.MergeTrees(ctx, before, onto, commit.Tree)
	if err != nil {
		return "", p.conflict(ctx, l, err, c.OID)
	}
	return tree, nil
}
