package git

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gitland/internal/object"
)

// A Config is git's configuration as one process saw it, all scopes and
// includes applied. Keys are in git's canonical spelling: section and variable
// in lower case, the subsection as written.
type Config struct {
	values   map[string][]string
	settings []Setting // in git's order
}

func (r *Repo) loadConfig(ctx context.Context) error {
	out, err := r.run(ctx, command{reading: true, args: []string{"config", "--list", "-z"}})
	if err != nil {
		return err
	}
	r.Config = parseConfig(out)
	return nil
}

func parseConfig(out string) Config {
	c := Config{values: map[string][]string{}}
	for _, s := range parseSettings(out) {
		if s.Bare {
			s.Value = "true"
		}
		c.values[s.Key] = append(c.values[s.Key], s.Value)
		c.settings = append(c.settings, Setting{Key: s.Key, Value: s.Value})
	}
	return c
}

// A Setting is one line of a file in git's configuration syntax.
type Setting struct {
	Key   string // in git's canonical spelling, as in Config
	Value string
	Bare  bool // the key has no value ("[core] bare"), which stands for true
}

// parseSettings reads what "git config --list -z" prints.
func parseSettings(out string) []Setting {
	var settings []Setting
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if entry == "" {
			continue
		}
		key, value, found := strings.Cut(entry, "\n") // a bare key is printed without the line break
		settings = append(settings, Setting{key, value, !found})
	}
	return settings
}

// Settings reads a blob in git's configuration syntax, in its order. Includes are
// not followed: they are settings like others. The error tells git's own words,
// with the line, where the syntax is bad.
func (r *Repo) Settings(ctx context.Context, blob object.OID) ([]Setting, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"config", "--blob", string(blob), "--no-includes", "--list", "-z"}})
	if err != nil {
		return nil, err
	}
	return parseSettings(out), nil
}

// Below are the settings whose keys begin with prefix, in git's order.
func (c Config) Below(prefix string) []Setting {
	var settings []Setting
	for _, s := range c.settings {
		if strings.HasPrefix(s.Key, prefix) {
			settings = append(settings, s)
		}
	}
	return settings
}

// canonical is the spelling under which git lists a key: section and variable
// in lower case, what stands between them as it is.
func canonical(key string) string {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return strings.ToLower(key)
	}
	return strings.ToLower(key[:first]) + key[first:last] + strings.ToLower(key[last:])
}

// Get is the last value of key, or "".
func (c Config) Get(key string) string {
	if all := c.All(key); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// All are the values of key, in git's order.
func (c Config) All(key string) []string { return c.values[canonical(key)] }

// Bool reads key as git reads a boolean; fallback is the value of an absent key.
func (c Config) Bool(key string, fallback bool) (bool, error) {
	switch v := strings.ToLower(c.Get(key)); v {
	case "":
		if len(c.All(key)) == 0 {
			return fallback, nil
		}
		return false, nil // "key =" is false in git
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	default:
		return false, fmt.Errorf("config %s: %q is not true or false", key, v)
	}
}

// Duration reads key as Go spells durations ("30s", "2m"); fallback is the
// value of an absent key.
func (c Config) Duration(key string, fallback time.Duration) (time.Duration, error) {
	v := c.Get(key)
	if v == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("config %s: %q is not a duration such as 30s or 2m", key, v)
	}
	return d, nil
}

// Remotes are the names of the configured remotes that have a URL, sorted.
func (c Config) Remotes() []string {
	var names []string
	for key := range c.values {
		name, ok := strings.CutPrefix(key, "remote.")
		if !ok {
			continue
		}
		if name, ok = strings.CutSuffix(name, ".url"); ok && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// SetConfig adds a value to the repository's own configuration, which all its worktrees
// share, unless it is there: by another process since this one read it, too.
func (r *Repo) SetConfig(ctx context.Context, key, value string) error {
	_, err := r.run(ctx, command{args: []string{"config", "--local", "--fixed-value", "--replace-all", key, value, value}})
	return err
}

// PutConfig makes value the only one of key in the repository's own configuration, and
// reads all of it again: another scope, such as a worktree's, may count before that.
func (r *Repo) PutConfig(ctx context.Context, key, value string) error {
	if _, err := r.run(ctx, command{args: []string{"config", "--local", "--replace-all", key, value}}); err != nil {
		return err
	}
	return r.loadConfig(ctx)
}

// UnsetConfig takes every value of key out of the repository's own configuration, and
// the section with its last key. A key that is not there is no error.
func (r *Repo) UnsetConfig(ctx context.Context, key string) error {
	_, err := r.run(ctx, command{args: []string{"config", "--local", "--unset-all", key}})
	if ExitCode(err) == 5 { // git-config(1): what was to be unset is not there
		return nil
	}
	return err
}

// OwnConfig are the values of key in the repository's own configuration, which all its
// worktrees share, as they are now.
func (r *Repo) OwnConfig(ctx context.Context, key string) ([]string, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"config", "--local", "-z", "--get-all", key}})
	if ExitCode(err) == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}

// HooksDir is the directory where git looks for hooks in this worktree, by
// core.hooksPath or its own default. It need not exist.
func (r *Repo) HooksDir(ctx context.Context) (string, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"rev-parse", "--git-path", "hooks"}})
	if err != nil {
		return "", err
	}
	dir := strings.TrimSuffix(out, "\n")
	if filepath.IsAbs(dir) {
		return dir, nil
	}
	return filepath.Abs(filepath.Join(r.Dir, dir))
}
