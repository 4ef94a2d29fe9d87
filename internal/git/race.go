package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gitland/internal/object"
)

// Race pushes a ref twice at once, on purpose: git reads the remote's refs for
// the late push, then the early one goes through and completes, and only then
// is the late one sent. On a remote with a compare-and-swap the late push
// fails, although it expected what it had read. dir is an empty directory of
// the caller's, for the hook that holds the late push up.
func (r *Repo) Race(ctx context.Context, dir string, late Push, early Move) (PushResult, error) {
	if !early.Old.valid {
		return PushResult{}, fmt.Errorf("push %s: no expectation was given", early.Ref)
	}
	args := []string{"git", "-c", "core.hooksPath=/dev/null"}
	name := "remote." + late.Remote.Name + "."
	if !late.Remote.pushURL {
		args = append(args, "-c", name+"pushurl="+late.Remote.URL)
	}
	args = append(args, "-c", name+"mirror=false", "-c", "push.pushOption=", "-c", "push.gpgSign=false",
		"push", "--quiet", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no",
		fmt.Sprintf("--force-with-lease=%s:%s", early.Ref, early.Old.oid),
		"--end-of-options", late.Remote.Name, fmt.Sprintf("%s:%s", early.New, early.Ref))
	for i, a := range args {
		args[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	// The pre-push hook runs after the refs were read and before anything is
	// sent (githooks(5)).
	script := "#!/bin/sh\ncat >/dev/null\nexec " + strings.Join(args, " ") + " >&2\n"
	if err := os.WriteFile(filepath.Join(dir, "pre-push"), []byte(script), 0o700); err != nil {
		return PushResult{}, err
	}
	late.Hooks, late.HooksPath = true, dir
	return r.Push(ctx, late)
}

// Namespace is the part of a ref above its last component, for messages.
func Namespace(ref object.Ref) string {
	return string(ref[:strings.LastIndexByte(string(ref), '/')+1])
}
