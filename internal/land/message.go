package land

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// A draft is the message of a commit that is to be made.
type draft struct {
	text string
	edit bool    // the user is to edit it
	sign string  // that begins what is no part of it
	by   cleanup // what becomes of it then
	what string  // what the user is told
}

// draft is the message of the commit that the plan makes: what -m gave, else git's own for
// a merge, else what the stack says.
func (m *motion) draft(ctx context.Context, p plan) (d draft, err error) {
	switch d.text = m.text; {
	case d.text != "" || p.change.kind != fromCommits:
	case p.mode == policy.Merge:
		d.text, err = m.l.Repo.MergeMessage(ctx, p.change.ref, p.change.head, p.view.Branch)
	default:
		d, err = m.compose(ctx, p)
	}
	return d, err
}

// compose makes one message of those of a stack, for the user to edit, if there is one to
// do it.
func (m *motion) compose(ctx context.Context, p plan) (d draft, err error) {
	repo := m.l.Repo
	stack := p.work()
	messages, authors, err := told(ctx, repo, stack)
	if err != nil || len(messages) == 1 {
		return draft{text: strings.Join(messages, "")}, err
	}
	if d.by, err = cleanupOf(repo.Config); err != nil {
		return d, err
	}
	if len(authors) > 1 { // the first is the commit's author, as with git rebase
		// To the last message by itself: to git, what a message begins with is its subject, and
		// no trailer, whatever it looks like.
		last := &messages[len(messages)-1]
		if *last, err = repo.WithCoauthors(ctx, *last, authors[1:]...); err != nil {
			return d, err
		}
	}
	joined := strings.Join(messages, "\n")
	d.edit, d.sign = m.r.Edit != nil, commentOf(repo.Config, joined)
	d.what = fmt.Sprintf("%d commits land on %s as one, of which this is the message.", len(messages), p.view.Branch.Branch())
	if d.edit && d.by == strip {
		for i := range messages {
			messages[i] = fmt.Sprintf("%s Commit %d of %d, %s:\n\n%s", d.sign, i+1, len(messages), stack[i].OID.Short(), messages[i])
		}
		joined = strings.Join(messages, "\n")
	}
	if d.text = joined; !d.edit && d.by != verbatim {
		d.text, err = repo.Stripspace(ctx, d.text, "")
	}
	return d, err
}

// edit has the user edit a draft in a file, as a hook may have left it, and writes what
// comes of it there.
func (m *motion) edit(ctx context.Context, d draft, file string) (string, error) {
	defer func() { m.wait, m.start = lease.NewWaiter(m.r.Waiting), time.Now() }() // as with a check, it is no wait
	text, err := readMessage(file)
	if err == nil {
		err = os.WriteFile(file, []byte(text+d.by.advice(d.sign, d.what)), 0o600)
	}
	if err == nil {
		err = m.r.Edit(ctx, file)
	}
	if err == nil {
		text, err = readMessage(file)
	}
	if err == nil {
		text, err = d.by.edited(ctx, m.l.Repo, d.sign, text)
	}
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(text) == "" {
		return "", fault.New(fault.Usage, "the message is empty, and nothing landed").WithHint("add -m '%s'", Message)
	}
	if err := m.l.Repo.LeaveMessage(text); err != nil { // it may be wanted again
		m.warn("the message is left nowhere, should the landing be refused: %v", err)
	}
	return text, os.WriteFile(file, []byte(text), 0o600)
}

// told are the messages of a stack, each of whole lines, and its authors, each once.
func told(ctx context.Context, repo *git.Repo, stack []git.RevListEntry) (messages, authors []string, err error) {
	var ids []object.OID
	for _, c := range stack {
		ids = append(ids, c.OID)
		author, err := repo.AuthorOf(ctx, c.OID)
		if err != nil {
			return nil, nil, err
		}
		author = author[:strings.LastIndex(author, ">")+1] // without the time
		if !slices.Contains(authors, author) {
			authors = append(authors, author)
		}
	}
	messages, err = repo.Messages(ctx, ids)
	for i, text := range messages {
		messages[i] = strings.TrimRight(text, "\n") + "\n"
	}
	return messages, authors, err
}

// A cleanup is what becomes of an edited message, by commit.cleanup of git-commit(1).
type cleanup string

const (
	strip      cleanup = "strip"
	whitespace cleanup = "whitespace"
	verbatim   cleanup = "verbatim"
	scissors   cleanup = "scissors"
)

func cleanupOf(c git.Config) (cleanup, error) {
	mode := cleanup(c.Get("commit.cleanup"))
	if mode == "" || mode == "default" {
		mode = strip
	}
	if !slices.Contains([]cleanup{strip, whitespace, verbatim, scissors}, mode) {
		return "", fault.New(fault.Usage, "config commit.cleanup: %q is none of default, strip, whitespace, verbatim and scissors", mode).
			WithHint("git config commit.cleanup default")
	}
	return mode, nil
}

// commentOf is what begins a line that is no part of a message. With "auto" it is, as git
// has it, a character that begins none of text's.
func commentOf(c git.Config, text string) string {
	sign := cmp.Or(c.Get("core.commentstring"), c.Get("core.commentchar"), "#")
	if sign != "auto" {
		return sign
	}
	for _, r := range "#;@!$%^&|:" {
		if !strings.Contains("\n"+text, "\n"+string(r)) {
			return string(r)
		}
	}
	return "#"
}

const scissorsLine = "------------------------ >8 ------------------------"

// advice is what the user is told below the message; nothing where it would be taken
// for a part of it.
func (c cleanup) advice(sign, what string) string {
	switch c {
	case strip:
		return fmt.Sprintf("\n%s %s\n%s Lines that begin with '%s' are left out; without any others nothing lands.\n", sign, what, sign, sign)
	case scissors:
		return fmt.Sprintf("\n%s %s\n%s Do not change the line above: all below it is left out.\n%s %s\n", sign, scissorsLine, sign, sign, what)
	}
	return ""
}

// edited is what the user has made of a message.
func (c cleanup) edited(ctx context.Context, repo *git.Repo, sign, text string) (string, error) {
	switch c {
	case verbatim:
		return text, nil
	case scissors:
		if at := strings.Index("\n"+text, "\n"+sign+" "+scissorsLine+"\n"); at >= 0 {
			text = text[:at]
		}
		fallthrough
	case whitespace:
		return repo.Stripspace(ctx, text, "")
	}
	return repo.Stripspace(ctx, text, sign)
}
