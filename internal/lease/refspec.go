package lease

import (
	"context"
	"errors"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
)

// A Refspec is an update as people write it, as in git-push(1): "[+]SOURCE:REF",
// a branch's name alone, or ":REF" for a deletion.
type Refspec string

// Rewrites reports whether the ref may lose what it has: with "+", and where it is
// to be deleted.
func (r Refspec) Rewrites() bool { return strings.HasPrefix(string(r), "+") }

// Update resolves a refspec in this clone. The error is of class Usage.
func (r Refspec) Update(ctx context.Context, repo *git.Repo) (event.Update, error) {
	source, target, explicit := strings.Cut(strings.TrimPrefix(string(r), "+"), ":")
	bad := func(format string, args ...any) (event.Update, error) {
		return event.Update{}, fault.New(fault.Usage, "refspec %q: "+format, append([]any{string(r)}, args...)...).
			WithHint("git land override --reason TEXT HEAD:main")
	}
	if strings.ContainsAny(string(r), "*\n\x00") {
		return bad("one ref at a time")
	}
	// A name without a slash to begin with is a branch, else a tag, as it is here.
	here := func(name string) (string, error) {
		for _, full := range []string{name, "refs/heads/" + name, "refs/tags/" + name} {
			if !strings.HasPrefix(full, "refs/") {
				continue
			}
			if _, err := repo.Lookup(ctx, full); !errors.Is(err, git.ErrNotFound) {
				return full, err
			}
		}
		return "", nil
	}
	var u event.Update
	full, err := here(source)
	switch {
	case err != nil:
		return u, err
	case !explicit && full == "":
		return bad("there is no branch or tag %s here", source)
	case !explicit:
		source, target = full, full
	case full != "":
		source = full
	}
	switch {
	case target == "HEAD" || target == "@":
		return bad("HEAD is where somebody stands, and no ref to push to")
	case strings.HasPrefix(target, "heads/") || strings.HasPrefix(target, "tags/"):
		target = "refs/" + target
	case !strings.HasPrefix(target, "refs/") && strings.HasPrefix(full, "refs/tags/"):
		target = "refs/tags/" + target
	case !strings.HasPrefix(target, "refs/"):
		target = "refs/heads/" + target
	}
	if u.Ref, err = object.ParseRef(target); err != nil {
		return bad("%w", err)
	}
	if explicit && source == "" {
		return u, nil
	}
	kind := "" // a tag goes as it is
	if strings.HasPrefix(string(u.Ref), "refs/heads/") {
		kind = "^{commit}"
	}
	o, err := repo.Lookup(ctx, source+kind)
	if errors.Is(err, git.ErrNotFound) {
		return bad("there is no %s here", source)
	}
	u.New = o.OID
	return u, err
}
