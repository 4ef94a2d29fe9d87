package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitland/internal/object"
)

// A Remote is a configured remote reduced to one URL, through which we both
// read and write: a lease that is read in one place and written in another
// would be two.
type Remote struct {
	Name string
	// URL is as configured, before url.<base>.insteadOf applies.
	URL string
	// Rewrites are the url.<base>.insteadOf settings, which change what URL
	// means; part of the identity of the authority.
	Rewrites string

	fetchFrom string // what git-fetch is given: the name, or the push URL
	pushURL   bool   // remote.<name>.pushurl is configured, and is URL
}

// ErrManyURLs says that pushes to a remote would go to several places.
var ErrManyURLs = errors.New("has several URLs to push to; one place must decide")

// ErrNoRemote says that no remote of that name is configured.
var ErrNoRemote = errors.New("no such remote")

// ErrUnnameable says that git -c, which takes a name up to its first "=", cannot set
// anything of a remote.
var ErrUnnameable = errors.New(`has a "=" in its name, of which git -c can set nothing`)

// Remote looks up a configured remote. Where a push URL is configured it is
// used for reading too: with pushes alone one could never see whether they
// arrived.
func (r *Repo) Remote(name string) (Remote, error) {
	urls := r.Config.All("remote." + name + ".url")
	pushURLs := r.Config.All("remote." + name + ".pushurl")
	if name == "" || strings.HasPrefix(name, "-") || len(urls) == 0 {
		return Remote{}, fmt.Errorf("remote %q: %w", name, ErrNoRemote)
	}
	if strings.Contains(name, "=") {
		return Remote{}, fmt.Errorf("remote %q: %w", name, ErrUnnameable)
	}
	if len(urls) > 1 || len(pushURLs) > 1 {
		return Remote{}, fmt.Errorf("remote %q: %w", name, ErrManyURLs)
	}
	remote := Remote{Name: name, URL: urls[0], fetchFrom: name}
	if len(pushURLs) == 1 {
		remote.URL, remote.fetchFrom, remote.pushURL = pushURLs[0], pushURLs[0], true
	}
	var rewrites []string
	for _, key := range slices.Sorted(maps.Keys(r.Config.values)) {
		if strings.HasPrefix(key, "url.") && strings.HasSuffix(key, ".insteadof") {
			for _, prefix := range r.Config.values[key] {
				if strings.HasPrefix(remote.URL, prefix) { // the others change nothing
					rewrites = append(rewrites, key+"="+prefix)
				}
			}
		}
	}
	remote.Rewrites = strings.Join(rewrites, "\x00")
	return remote, nil
}

// A Refspec fetches one ref, or with a "*" in both a group of them.
type Refspec struct{ From, To string }

// Fetch brings refs of the remote into refs of ours, forced, and deletes those
// below a pattern's To that the remote no longer has. It touches no other ref:
// no remote-tracking branch, no tag, no FETCH_HEAD. A Refspec without "*" whose
// ref the remote lacks makes git fail with exit code 128, as does a remote that
// cannot be reached; List tells the two apart.
func (r *Repo) Fetch(ctx context.Context, remote Remote, specs ...Refspec) error {
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=",
		"--no-recurse-submodules", "--prune", "--no-prune-tags", "--no-show-forced-updates",
		"--end-of-options", remote.fetchFrom}
	for _, s := range specs {
		args = append(args, "+"+s.From+":"+s.To)
	}
	_, err := r.run(ctx, command{
		args: args,
		config: []string{"fetch.writeCommitGraph=false", "fetch.pruneTags=false",
			"remote." + remote.Name + ".followRemoteHEAD=never"}, // git 2.48 would make the remote's HEAD a ref of ours
	})
	return err
}

// A Listing is what a remote advertises.
type Listing struct {
	Head object.Ref // the branch that HEAD is on; empty when unborn or detached
	Refs map[object.Ref]object.OID
}

// List reads the remote's refs. All of them travel: with a pattern git filters
// what arrived, by the end of the name, which is not an exact match.
func (r *Repo) List(ctx context.Context, remote Remote) (Listing, error) {
	list := Listing{Refs: map[object.Ref]object.OID{}}
	out, err := r.run(ctx, command{reading: true, args: []string{
		"ls-remote", "--quiet", "--symref", "--end-of-options", remote.fetchFrom}})
	if err != nil {
		return list, err
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if target, ok := strings.CutPrefix(line, "ref: "); ok {
			if branch, name, _ := strings.Cut(target, "\t"); name == "HEAD" {
				if list.Head, err = object.ParseRef(branch); err != nil {
					return list, err
				}
			}
			continue
		}
		oid, ref, err := parseRefLine(line, "\t")
		if err != nil {
			continue // a peeled tag ("^{}"), or a name that we could not use anyway
		}
		list.Refs[ref] = oid
	}
	return list, nil
}

// A Push moves refs of a remote. Every move carries what the ref must be.
type Push struct {
	Remote Remote
	Moves  []Move
	Atomic bool
	// Hooks runs the user's pre-push hook, as a landing must: git-lfs
	// uploads its objects there. A push of lease refs alone skips it,
	// since pre-commit and its like would take an event for a branch.
	Hooks bool
	// HooksPath, when set, is where this push finds its hooks, and the only place.
	HooksPath string
	Environ   []string // added to the environment, for the hook
}

// A RefStatus is what git said of one ref of a push.
type RefStatus struct {
	OK bool
	// Rejected means that the remote itself answered that it did not move the
	// ref, as opposed to git not having sent it, or having got no answer.
	Rejected bool
	Summary  string // git's words, for people only
}

// Reason is what is between the parentheses of the summary, else all of it.
func (s RefStatus) Reason() string {
	_, reason, found := strings.Cut(s.Summary, "(")
	if reason, closed := strings.CutSuffix(reason, ")"); found && closed {
		return reason
	}
	return s.Summary
}

// A PushResult is what git said of a push. Complete means that there was an
// ok for every ref and exit code 0; anything else proves nothing either way,
// and the remote must be read.
type PushResult struct {
	Complete bool
	Refs     map[object.Ref]RefStatus
	Err      error // the *Error of a push that did not exit with 0
	// Unsent means that nothing was sent: a pre-push hook of this clone refused.
	Unsent bool
	// Rejected means that the remote has answered for every ref of the push that
	// it did not move it. So that push is over: it is not on its way any more.
	Rejected bool
}

// Push runs one git push. The error is for a push that could not be asked for;
// how it went is in the result.
//
// A user's settings join any push that does not forbid it: followTags adds
// refs to the transaction, pushOption and gpgSign can make it fail, mirror
// refuses refspecs, pushInsteadOf sends it elsewhere than it was read from, and
// push.recurseSubmodules pushes other repositories too, or, to find out which, walks
// the whole history of a chain each time. See Unpushed.
func (r *Repo) Push(ctx context.Context, p Push) (PushResult, error) {
	args := []string{"push", "--porcelain", "--no-follow-tags", "--no-signed", "--no-force-if-includes", "--recurse-submodules=no"}
	if p.Atomic {
		args = append(args, "--atomic")
	}
	if !p.Hooks {
		args = append(args, "--no-verify")
	}
	var specs []string
	for _, m := range p.Moves {
		if !m.Old.valid {
			return PushResult{}, fmt.Errorf("push %s: no expectation was given", m.Ref)
		}
		args = append(args, fmt.Sprintf("--force-with-lease=%s:%s", m.Ref, m.Old.oid))
		specs = append(specs, fmt.Sprintf("%s:%s", m.New, m.Ref))
	}
	args = append(args, "--end-of-options", p.Remote.Name)
	name := "remote." + p.Remote.Name + "."
	config := []string{"push.pushOption=", "push.gpgSign=false", name + "mirror=false"}
	if !p.Remote.pushURL {
		config = append(config, name+"pushurl="+p.Remote.URL)
	}
	if p.HooksPath != "" {
		config = append(append(config, "core.hooksPath="+p.HooksPath), r.withoutConfiguredHooks()...)
	}
	out, err := r.run(ctx, command{args: append(args, specs...), config: config, env: p.Environ})
	result := PushResult{Refs: parsePorcelain(out), Err: err}
	result.Complete, result.Rejected = err == nil, len(result.Refs) == len(p.Moves)
	for _, m := range p.Moves {
		result.Complete = result.Complete && result.Refs[m.Ref].OK
		result.Rejected = result.Rejected && result.Refs[m.Ref].Rejected
	}
	// Git dies with 128 of whatever goes wrong with a connection, and has a line
	// for each ref once it has sent something; but not so over HTTP.
	result.Unsent = p.Hooks && len(result.Refs) == 0 && ExitCode(err) == 1 && !r.byHelper(ctx, p.Remote)
	return result, nil
}

// byHelper reports whether git leaves the talking to a helper, as it does for
// HTTP, or whether that is not known.
func (r *Repo) byHelper(ctx context.Context, remote Remote) bool {
	url, err := r.URL(ctx, remote)
	if err != nil || strings.Contains(url, "::") || r.Config.Get("remote."+remote.Name+".vcs") != "" {
		return true
	}
	scheme, _, found := strings.Cut(url, "://")
	return found && !slices.Contains([]string{"file", "git", "ssh", "git+ssh", "ssh+git"}, scheme)
}

// URL is where git goes for a remote, its url.<base>.insteadOf applied. It asks
// nobody.
func (r *Repo) URL(ctx context.Context, remote Remote) (string, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"ls-remote", "--get-url", "--end-of-options", remote.fetchFrom}})
	return strings.TrimSuffix(out, "\n"), err
}

// parsePorcelain reads the lines "<flag>\t<from>:<to>\t<summary> (<reason>)" of
// git-push(1). "Done" is printed even when refs failed, so it is not asked.
func parsePorcelain(out string) map[object.Ref]RefStatus {
	refs := map[object.Ref]RefStatus{}
	for line := range strings.Lines(out) {
		flag, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || len(flag) != 1 {
			continue
		}
		spec, summary, _ := strings.Cut(rest, "\t")
		// A ref name has no colon; the source of a deletion is empty.
		ref, err := object.ParseRef(spec[strings.LastIndexByte(spec, ':')+1:])
		if err != nil {
			continue
		}
		refs[ref] = RefStatus{OK: strings.Contains(" +-*=", flag), Summary: summary,
			Rejected: flag == "!" && strings.HasPrefix(summary, "[remote rejected]")} // git-push(1), never translated
	}
	return refs
}
