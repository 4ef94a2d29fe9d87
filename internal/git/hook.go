package git

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
)

// RunHook runs a hook as git would for a push from the worktree top, with the given
// standard input and arguments. refused is that it ended with another code than 0;
// said is what it printed. The error is for a hook that could not be run.
//
// "git hook run" would do the same, but takes standard input from git 2.40 on only,
// and runs everybody's.
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

// RunsConfiguredHooks reports whether this git runs the hooks of its configuration
// (hook.<name>.command), as 2.54 and newer do. Older ones ignore them in silence.
func (r *Repo) RunsConfiguredHooks(ctx context.Context) (bool, error) {
	version, err := r.Version(ctx)
	if err != nil {
		return false, err
	}
	major, minor, err := majorMinor(version)
	return major > 2 || major == 2 && minor >= 54, err
}

// A ConfiguredHook is one that git has from its configuration.
type ConfiguredHook struct {
	Name    string // as in hook.<name>.command
	Command string // for a shell, which gets the hook's arguments as well
	// Off is the key by which it is switched off: its own hook.<name>.enabled, or
	// that of all configured hooks of the event; empty for one that runs.
	Off string
	// Scope is where Off stands, in the words of "git config --show-scope".
	Scope string
}

// ConfiguredHooks are the configured hooks of an event in this worktree, in the order in
// which git runs them: all of them, even where one fails, and after them the one in
// the hooks directory. The git must be one that RunsConfiguredHooks. The error is also for
// a configuration for which git would run nothing at all, and refuse what it was to guard.
func (r *Repo) ConfiguredHooks(ctx context.Context, event string) ([]ConfiguredHook, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"hook", "list", "-z", "--show-scope", event}})
	if err != nil && ExitCode(err) != 1 { // 1: there are none
		return nil, err
	}
	var list []ConfiguredHook
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		_, name, configured := strings.Cut(entry, "\t") // else it is the one in the hooks directory
		if !configured {
			continue
		}
		var h ConfiguredHook
		if own, off := strings.CutPrefix(name, "disabled\t"); off {
			name, h.Off = own, "hook."+own+".enabled"
		} else if own, off := strings.CutPrefix(name, "event-disabled\t"); off {
			name, h.Off = own, "hook."+event+".enabled"
		}
		h.Name = name
		// Exit code 1: one that is off need not have a command.
		if h.Command, err = r.configValue(ctx, "hook."+name+".command"); err != nil && ExitCode(err) != 1 {
			return nil, err
		}
		if h.Off != "" {
			scoped, err := r.configValue(ctx, h.Off, "--show-scope")
			if err != nil {
				return nil, err
			}
			h.Scope, _, _ = strings.Cut(scoped, "\x00")
		}
		list = append(list, h)
	}
	return list, nil
}

// HooksWithoutCommand are the configured hooks that have an event and no command, as the
// configuration was when the repository was opened: one that is not switched off ends
// every command of a git that RunsConfiguredHooks and would run a hook.
func (r *Repo) HooksWithoutCommand() []string {
	var names []string
	for key := range r.Config.values {
		name, isHook := strings.CutPrefix(key, "hook.")
		name, isEvent := strings.CutSuffix(name, ".event")
		if isHook && isEvent && len(r.Config.values["hook."+name+".command"]) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// configValue is the last value of a key as this worktree has it now.
func (r *Repo) configValue(ctx context.Context, key string, options ...string) (string, error) {
	out, err := r.run(ctx, command{reading: true, args: slices.Concat([]string{"config", "-z"}, options, []string{"--get", key})})
	return strings.TrimSuffix(out, "\x00"), err
}

// withoutConfiguredHooks is configuration for a command that is to run none of the
// user's hooks: an empty core.hooksPath stops only those in a directory.
func (r *Repo) withoutConfiguredHooks() []string {
	var off []string
	for key := range r.Config.values {
		hook, isEvent := strings.CutSuffix(key, ".event")
		if isEvent && strings.HasPrefix(hook, "hook.") && !strings.Contains(hook, "=") { // which -c cannot say
			off = append(off, hook+".enabled=false")
		}
	}
	slices.Sort(off)
	return off
}
