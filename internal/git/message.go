package git

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/object"
)

// Messages are the messages of commits, in the encoding in which a commit would be made
// here.
func (r *Repo) Messages(ctx context.Context, commits []object.OID) ([]string, error) {
	var asked strings.Builder
	for _, oid := range commits {
		asked.WriteString(string(oid) + "\n")
	}
	out, err := r.run(ctx, command{reading: true, stdin: []byte(asked.String()), args: []string{"log", "--no-walk=unsorted", "--no-notes",
		"--no-show-signature", "--encoding=" + cmp.Or(r.Config.Get("i18n.commitencoding"), "UTF-8"), "-z", "--format=%B", "--stdin"}})
	if err != nil {
		return nil, err
	}
	messages := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if len(messages) != len(commits) {
		return nil, fmt.Errorf("log: %d messages of %d commits", len(messages), len(commits))
	}
	return messages, nil
}

// AuthorOf is the author of a commit, "Name <email> seconds zone", in the encoding in
// which a commit would be made here. It starts a process only where that may be another.
func (r *Repo) AuthorOf(ctx context.Context, commit object.OID) (string, error) {
	data, err := r.Commit(ctx, commit)
	if err != nil {
		return "", err
	}
	encoding := r.Config.Get("i18n.commitencoding")
	encoded := slices.ContainsFunc(data.Extra, func(h object.Header) bool { return h.Key == "encoding" })
	at := strings.LastIndex(data.Author, ">") + 1
	if encoding == "" && !encoded || at == 0 {
		return data.Author, nil
	}
	out, err := r.run(ctx, command{reading: true, args: []string{"log", "--no-walk", "--no-notes", "--no-show-signature",
		"--encoding=" + cmp.Or(encoding, "UTF-8"), "--format=%an <%ae>", string(commit)}})
	return strings.TrimSuffix(out, "\n") + data.Author[at:], err
}

// MergeMessage is git's own message of a commit that merges a commit into a branch. ref
// is what named it, empty where that was no ref.
func (r *Repo) MergeMessage(ctx context.Context, ref string, commit object.OID, into object.Ref) (string, error) {
	what := fmt.Sprintf("commit '%s'", commit)
	for prefix, kind := range map[string]string{"refs/heads/": "branch", "refs/remotes/": "remote-tracking branch", "refs/tags/": "tag"} {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			what = fmt.Sprintf("%s '%s' of .", kind, name)
		}
	}
	return r.run(ctx, command{reading: true, stdin: []byte(string(commit) + "\t\t" + what + "\n"),
		args: []string{"fmt-merge-msg", "--no-log", "--into-name", into.Branch()}})
}

// WithCoauthors is a message that names more authors in trailers at its end, each
// "Name <email>", unless it does already.
func (r *Repo) WithCoauthors(ctx context.Context, message string, authors ...string) (string, error) {
	args := []string{"interpret-trailers", "--no-divider", "--where", "end", "--if-exists", "addIfDifferent", "--if-missing", "add"}
	for _, a := range authors {
		args = append(args, "--trailer", "Co-authored-by: "+a)
	}
	return r.run(ctx, command{reading: true, stdin: []byte(message), args: args})
}

// Stripspace cleans a message as git-commit(1) does for commit.cleanup=whitespace, and
// with a comment string for strip.
func (r *Repo) Stripspace(ctx context.Context, message, comment string) (string, error) {
	c := command{reading: true, stdin: []byte(message), args: []string{"stripspace"}}
	if comment != "" {
		c.args = append(c.args, "--strip-comments")
		c.config = []string{"core.commentChar=" + comment}
	}
	return r.run(ctx, c)
}

// Editor is the command with which the user edits messages, for a shell.
func (r *Repo) Editor(ctx context.Context) (string, error) {
	asking := *r
	asking.environ = slices.Clone(r.environ)
	// Ours comes after the user's own, and would be the answer.
	for i, kv := range slices.Backward(asking.environ) {
		if kv == noEditor {
			asking.environ = slices.Delete(asking.environ, i, i+1)
			break
		}
	}
	out, err := asking.run(ctx, command{reading: true, args: []string{"var", "GIT_EDITOR"}})
	return strings.TrimSuffix(out, "\n"), err
}

// ErrNoRevision says that a word names no commit of the repository.
var ErrNoRevision = fmt.Errorf("no such commit: %w", ErrNotFound)

// Revision is the commit that a word of the user's stands for, and the ref that it names;
// "" where it names none, or none alone. The error is ErrNoRevision where it stands for
// no commit.
func (r *Repo) Revision(ctx context.Context, word string) (commit object.OID, ref string, err error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", word}})
	if ExitCode(err) == 1 || ExitCode(err) == 128 {
		return "", "", ErrNoRevision
	}
	if err != nil {
		return "", "", err
	}
	o, err := r.Lookup(ctx, strings.TrimSpace(out)+"^{commit}")
	if err != nil {
		return "", "", ErrNoRevision
	}
	// For what is no ref it prints nothing, or fails.
	named, _ := r.run(ctx, command{reading: true, args: []string{"rev-parse", "--verify", "--quiet", "--symbolic-full-name", "--end-of-options", word}})
	if full, err := object.ParseRef(strings.TrimSpace(named)); err == nil {
		ref = string(full)
	}
	return o.OID, ref, nil
}

// CommitsNamed are the commits of the repository whose ids begin with the digits.
func (r *Repo) CommitsNamed(ctx context.Context, digits string) ([]object.OID, error) {
	all, err := r.oidList(ctx, command{args: []string{"rev-parse", "--disambiguate=" + digits}})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(oid object.OID) bool {
		o, err := r.Lookup(ctx, string(oid))
		return err != nil || o.Kind != object.Commit
	}), nil
}
