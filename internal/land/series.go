package land

import (
	"context"
	"slices"
	"unicode/utf8"

	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// A series is the commits that land.
type series struct {
	tip     object.OID
	count   int
	objects []object.Object // not written yet
}

// commits builds the commits that land. text is the message of one that is made.
func (p *plan) commits(ctx context.Context, l *ledger.Ledger, text string) (series, error) {
	var onBase []object.OID
	if p.view.Base != "" {
		onBase = []object.OID{p.view.Base}
	}
	switch {
	case p.change.kind != fromCommits:
		return p.commit(ctx, l, fresh{parents: onBase, text: text})
	case p.forward:
		return series{tip: p.change.head, count: len(p.stack)}, nil
	case p.mode == policy.Squash:
		author, err := l.Repo.AuthorOf(ctx, p.work()[0].OID)
		if err != nil {
			return series{}, err
		}
		return p.commit(ctx, l, fresh{parents: onBase, text: text, author: author})
	case p.mode == policy.Merge:
		s, err := p.commit(ctx, l, fresh{parents: append(onBase, p.change.head), text: text})
		s.count += len(p.stack)
		return s, err
	}
	return p.rebase(ctx, l)
}

// work is the stack without its merges, unless there is nothing else: they bring nothing of
// their own.
func (p *plan) work() []git.RevListEntry {
	work := slices.DeleteFunc(slices.Clone(p.stack), func(c git.RevListEntry) bool { return len(c.Parents) > 1 })
	if len(work) == 0 {
		return p.stack
	}
	return work
}

// makes reports whether a commit with a message of its own is made, which no commit of the
// user's has.
func (p *plan) makes() bool {
	return p.change.kind != fromCommits || !p.forward && (p.mode == policy.Squash || p.mode == policy.Merge)
}

// count is how many commits land.
func (p *plan) count() int {
	switch {
	case p.change.kind != fromCommits || p.mode == policy.Squash && !p.forward:
		return 1
	case p.mode == policy.Merge && !p.forward:
		return len(p.stack) + 1
	case len(p.picks) > 0:
		return len(p.picks)
	}
	return max(1, len(p.stack))
}

// A fresh is a commit that is made of the plan's tree.
type fresh struct {
	parents []object.OID
	text    string
	author  string // "Name <email> seconds zone"; empty is the user, now
}

// commit makes one commit of the whole change. Git is asked to
// make it where it has to sign or to encode; otherwise it is one of the objects
// that are all written by one process.
func (p *plan) commit(ctx context.Context, l *ledger.Ledger, c fresh) (series, error) {
	sign, err := signs(l)
	if err != nil {
		return series{}, err
	}
	if encoding := l.Repo.Config.Get("i18n.commitencoding"); sign || encoding != "" || !utf8.ValidString(c.text+c.author) {
		tip, err := l.Repo.CommitTree(ctx, git.NewCommit{Tree: p.tree, Parents: c.parents, Author: c.author, Message: c.text, Sign: sign})
		if err != nil && sign {
			err = p.unsigned(l, "the commit", err)
		}
		return series{tip: tip, count: 1}, err
	}
	if c.author == "" {
		if c.author, err = l.Repo.Author(); err != nil {
			return series{}, err
		}
	}
	stamp, err := l.Repo.Stamp(l.Now())
	if err != nil {
		return series{}, err
	}
	o := l.Repo.Format.New(object.Commit, object.CommitData{Tree: p.tree, Parents: c.parents,
		Author: c.author, Committer: stamp, Message: c.text}.Encode())
	return series{tip: o.OID, count: 1, objects: []object.Object{o}}, nil
}

// rebase writes the stack anew on the base. Author, dates and message stay as
// they are; a signature does not, since it would not match, and is made anew
// where commits are signed here.
func (p *plan) rebase(ctx context.Context, l *ledger.Ledger) (series, error) {
	s := series{tip: p.view.Base}
	sign, err := signs(l)
	if err != nil {
		return s, err
	}
	stamp, err := l.Repo.Stamp(l.Now())
	if err != nil {
		return s, err
	}
	for _, c := range p.picks {
		commit, err := l.Repo.Commit(ctx, c.commit)
		if err != nil {
			return s, err
		}
		commit.Tree, commit.Committer = c.tree, stamp
		commit.Parents = nil
		if s.tip != "" {
			commit.Parents = []object.OID{s.tip}
		}
		commit.Extra = slices.DeleteFunc(commit.Extra, git.IsSignature)
		if err := s.add(ctx, l, commit, sign); err != nil {
			return s, p.unsigned(l, "commit "+c.commit.Short(), err)
		}
	}
	return s, nil
}

// add puts a commit on top of the series. One that is signed git writes at once.
func (s *series) add(ctx context.Context, l *ledger.Ledger, c object.CommitData, sign bool) (err error) {
	s.count++
	if sign {
		s.tip, err = l.Repo.WriteSigned(ctx, c)
		return err
	}
	o := l.Repo.Format.New(object.Commit, c.Encode())
	s.objects, s.tip = append(s.objects, o), o.OID
	return nil
}
