package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitland/internal/fault"
)

// Ident is the committer's identity as git would write it now, without the
// date: "Name <email>". The error is a fault of class Usage, with git's own
// explanation, where no identity is configured.
func (r *Repo) Ident() (string, error) {
	full, err := r.ident()
	if err != nil {
		return "", err
	}
	return IdentName(full), nil
}

// Stamp is Ident followed by a date. GIT_COMMITTER_DATE wins over now, as it
// does in git.
func (r *Repo) Stamp(now time.Time) (string, error) {
	full, err := r.ident()
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(r.environ, func(kv string) bool { return strings.HasPrefix(kv, "GIT_COMMITTER_DATE=") }) {
		return full, nil
	}
	return fmt.Sprintf("%s %d %s", IdentName(full), now.Unix(), now.Format("-0700")), nil
}

// IdentName cuts the date off an identity as it stands in a commit.
func IdentName(ident string) string {
	name, _, found := strings.Cut(ident, ">")
	if !found {
		return ident
	}
	return name + ">"
}

// sameIdent reports whether author and committer are one: nothing is set for
// either alone, so git makes both from the same settings.
func (r *Repo) sameIdent() bool {
	for key := range r.Config.values {
		if strings.HasPrefix(key, "author.") || strings.HasPrefix(key, "committer.") {
			return false
		}
	}
	return !slices.ContainsFunc(r.environ, func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_AUTHOR_") || strings.HasPrefix(kv, "GIT_COMMITTER_")
	})
}

// plainIdent is the identity where user.name and user.email say it all, and in
// letters that git takes as they are. Git strips others, at the ends or anywhere
// (strbuf_addstr_without_crud in its ident.c); then git is asked.
func (r *Repo) plainIdent() (string, bool) {
	name, email := r.Config.Get("user.name"), r.Config.Get("user.email")
	plain := func(s string) bool {
		return s != "" && s == strings.TrimSpace(s) && !strings.ContainsFunc(s, func(c rune) bool {
			return c < ' ' || c == 0x7f || c == 0xfffd || strings.ContainsRune("<>.,:;\"\\'", c)
		})
	}
	user, domain, _ := strings.Cut(email, "@")
	if !r.sameIdent() || !plain(name) || !plain(user) || !plain(strings.ReplaceAll(domain, ".", "")) || strings.Trim(domain, ".") != domain {
		return "", false
	}
	return name + " <" + email + ">", true
}

func (r *Repo) readIdent(ctx context.Context, variable string) (string, error) {
	if ident, ok := r.plainIdent(); ok {
		now := time.Now()
		return fmt.Sprintf("%s %d %s", ident, now.Unix(), now.Format("-0700")), nil
	}
	out, err := r.run(ctx, command{reading: true, args: []string{"var", variable}})
	if failed := (*Error)(nil); errors.As(err, &failed) && failed.ExitCode == 128 {
		lines := strings.Split(strings.TrimSpace(failed.Stderr), "\n") // the last one says what, after a page of advice
		return "", fault.New(fault.Usage, "git does not know who you are: %s", strings.TrimPrefix(lines[len(lines)-1], "fatal: ")).
			WithHint("git config user.name 'Your Name' && git config user.email you@example.com")
	}
	if err != nil {
		return "", fmt.Errorf("read your git identity: %w", err)
	}
	return strings.TrimSpace(out), nil
}
