package git

import (
	"context"
	"errors"
	"os/exec"
	"strings"
)

// RunHook runs a hook as git would for a push from the worktree top, with the given
// standard input and arguments. refused is that it ended with another code than 0;
// said is what it printed. The error is for a hook that could not be run.
//
// "git hook run" would do the same, but takes standard input from git 2.40 on only.
func (r *Repo) RunHook(ctx context.Context, path, top, stdin string, args ...string) (refused bool, said string, err error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = top
	cmd.Env = WithoutRepoEnv(r.environ)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = killDelay
	out, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	if errors.As(err, &exited) && exited.ExitCode() > 0 {
		return true, string(out), nil
	}
	return false, string(out), err
}
