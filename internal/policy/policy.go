// Package policy owns what a team has agreed on about its landings: the file
// .gitland in the tree, in git's configuration syntax, and which of its commands
// may run in this clone.
//
// It promises that a policy is read from the commit that it is asked of and from
// nothing else, that what is in the file counts before the user's own
// configuration of the same keys, and that what it does not understand is named.
// It refuses to run anything, and to let a command of the file run that the user
// of this clone has not accepted: anybody who may push can write one.
package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
)

// File is where the policy is, from the top of the tree.
const File = ".gitland"

// A Policy is what counts for a landing.
type Policy struct {
	// Blob is the file that was read; empty where the commit has none.
	Blob object.OID
	// Target is land.onto; empty leaves it to the authority's HEAD.
	Target object.Ref
	// Lease is lease.name; empty is the target branch's own.
	Lease string
	// Paths are land.paths, pathspecs from the top of the tree.
	Paths []string
	// Checks must all have passed on what lands, in this order.
	Checks []Check
	// Steps follow each landing, in this order.
	Steps []Step
	// Unit is land.require=unit: a pass on the change's own tree is enough.
	Unit bool
	// Mode is land.mode; empty is Rebase.
	Mode Mode
	// MaxFiles is land.maxFiles, how many files may land at once; 0 is any number.
	MaxFiles int
	// Protect are lease.protect: patterns of branches, as Match takes them.
	Protect []string
	// Setup is land.verify.setup, a command for each new verification worktree.
	Setup Command

	// Problem says what of the file is not understood; nil where all of it is. What
	// is understood stands in the fields all the same, for those who only read.
	Problem *fault.Error
	// Newer means that what is not understood may be of a newer version.
	Newer bool

	retries  []retries
	required bool     // land.require is given
	says     []string // keys that the file gives
}

// A Command is a shell command, and where it comes from.
type Command struct {
	Key    string // of the setting, as "land.check.test.command"
	Text   string // for sh -c
	Shared bool   // it comes from the file, and so from others
}

// A Mode is a way in which commits land.
type Mode string

// The modes, as land.mode has them.
const (
	Rebase Mode = "rebase"  // one by one, on top of the target
	Squash Mode = "squash"  // as one commit
	Merge  Mode = "merge"   // as they are, with a commit that merges them into the target
	FFOnly Mode = "ff-only" // as they are, or not at all
)

// Modes are all of them.
func Modes() []Mode { return []Mode{Rebase, Squash, Merge, FFOnly} }

// A Check is one that must have passed. One without a command is run by another
// system, which records what it found ("git land verify --record").
type Check struct {
	Name string
	Command
}

// A Step is one that follows a landing: its command, and the one that says whether it has
// been done (exit code 0) or not (1), which may be missing.
type Step struct {
	Name       string
	Run, Check Command
}

// retries are those of one check.
type retries struct {
	check string
	n     int
}

// maxRetries bounds how often a check is run again.
const maxRetries = 10

// Retries is land.check.<name>.retries: how often the check is run again after it
// failed.
func (p Policy) Retries(check string) int {
	for _, r := range p.retries {
		if r.check == check {
			return r.n
		}
	}
	return 0
}

// Find is the check of that name, nil where there is none.
func (p Policy) Find(name string) *Check {
	i := slices.IndexFunc(p.Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Checks[i]
}

// FindStep is the step of that name, nil where there is none.
func (p Policy) FindStep(name string) *Step {
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Steps[i]
}

// Says reports whether the file itself gives a key, which is in git's canonical spelling.
func (p Policy) Says(key string) bool { return slices.Contains(p.says, key) }

// Commands are those that come from the file and need to be accepted.
func (p Policy) Commands() []Command {
	var all []Command
	for _, c := range p.Checks {
		if c.Shared && c.Text != "" {
			all = append(all, c.Command)
		}
	}
	if p.Setup.Shared {
		all = append(all, p.Setup)
	}
	for _, s := range p.Steps {
		all = append(all, s.shared()...)
	}
	return all
}

// over is p, with what it leaves open taken from own. A check that both name is p's;
// what either protects is protected.
func (p Policy) over(own Policy) Policy {
	p.Target = cmp.Or(p.Target, own.Target)
	p.Lease = cmp.Or(p.Lease, own.Lease)
	if p.Paths == nil {
		p.Paths = own.Paths
	}
	p.MaxFiles = cmp.Or(p.MaxFiles, own.MaxFiles)
	p.Protect = slices.Concat(p.Protect, own.Protect) // who protects more has a reason
	if p.Setup.Text == "" {
		p.Setup = own.Setup
	}
	p.Mode = cmp.Or(p.Mode, own.Mode)
	if !p.required {
		p.Unit, p.required = own.Unit, own.required
	}
	p.retries = slices.Concat(p.retries, own.retries) // the first of a name counts
	for _, c := range own.Checks {
		if p.Find(c.Name) == nil {
			p.Checks = append(slices.Clip(p.Checks), c)
		}
	}
	for _, s := range own.Steps {
		p = p.withStep(s)
	}
	return p
}

// Configured is the user's own policy, in git's configuration. The error is of class
// Usage and names the key.
func Configured(c git.Config) (Policy, error) {
	p, _, wrong := parse(slices.Concat(c.Below("land."), c.Below("lease.")), false)
	if len(wrong) > 0 {
		w := wrong[0]
		return p, fault.New(fault.Usage, "config %s: %s", w.key, w.why).WithHint("%s", w.hint)
	}
	return p, nil
}

// files are the keys that mean something in the file, beside those of checks and steps, as
// people write them.
var files = []string{"land.maxFiles", "land.mode", "land.onto", "land.paths", "land.require", "land.verify.setup", "lease.name", "lease.protect"}

// clones are the keys that mean something in a clone's configuration alone.
var clones = []string{"lease.remote", "lease.host", "lease.namespace", "lease.notesnamespace", "lease.sign", "land.wait", "land.verify.dir"}

// Unknown are the keys below land and lease in git's configuration that mean nothing to
// the tools: misspelt, mostly.
func Unknown(c git.Config) []string {
	_, unknown, _ := parse(slices.Concat(c.Below("land."), c.Below("lease.")), false)
	return slices.DeleteFunc(unknown, func(key string) bool { return slices.Contains(clones, key) })
}

// A bad setting, and why.
type bad struct{ key, why, hint string }

// parse reads settings. unknown are the keys that it does not know, each once.
func parse(settings []git.Setting, shared bool) (p Policy, unknown []string, wrong []bad) {
	for _, s := range settings {
		why, hint := "", "git config --edit"
		check, isCheck := checkOf(s.Key, ".command")
		again, isRetries := checkOf(s.Key, ".retries")
		step, variable := stepOf(s.Key)
		switch {
		case !isCheck && !isRetries && variable == "" && !known(s.Key):
			if !slices.Contains(unknown, s.Key) {
				unknown = append(unknown, s.Key)
			}
			continue
		case s.Bare && shared:
			why = "has no value"
		case shared && s.Key != "land.paths" && s.Key != "lease.protect" && slices.Contains(p.says, s.Key):
			why = "is given twice" // who writes two commands wants both to run
		case isCheck:
			why = p.addCheck(check, Command{s.Key, s.Value, shared})
		case isRetries:
			why = p.addRetries(again, s.Value)
		case variable != "":
			why = p.addStep(step, variable, Command{s.Key, s.Value, shared})
		default:
			why, hint = p.set(s, shared)
		}
		if shared {
			p.says = append(p.says, s.Key)
		}
		if why != "" {
			wrong = append(wrong, bad{spelling(s.Key), why, hint})
		}
	}
	for _, r := range p.retries { // in a configuration they may be of the team's check
		if c := p.Find(r.check); shared && (c == nil || c.Text == "") {
			wrong = append(wrong, bad{key: "land.check." + r.check + ".retries", why: "is of no check that has a command"})
		}
	}
	for _, s := range p.Steps { // in a configuration its check may be of the team's step
		if shared && s.Run.Text == "" {
			wrong = append(wrong, bad{key: s.Check.Key, why: "is of no step that has a command"})
		}
	}
	return p, unknown, wrong
}

// checkOf is the name in "land.check.<name>.command", or with another variable.
func checkOf(key, variable string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(key, "land.check."); !ok {
		return "", false
	}
	return strings.CutSuffix(name, variable)
}

func known(key string) bool { return slices.Contains(files, spelling(key)) }

// spelling is a key as people write it, where git has it in small letters.
func spelling(key string) string {
	for _, f := range files {
		if strings.ToLower(f) == key {
			return f
		}
	}
	return key
}

// set takes a setting that is no check, and says what is wrong with it.
func (p *Policy) set(s git.Setting, shared bool) (why, hint string) {
	hint = "git config --edit"
	if s.Value == "" && (shared || s.Key != "land.maxfiles" && s.Key != "land.mode" && s.Key != "land.onto" && s.Key != "lease.name" && s.Key != "land.require" && s.Key != "land.verify.setup") {
		return "is empty", hint
	}
	switch s.Key {
	case "land.mode":
		if p.Mode = Mode(s.Value); s.Value != "" && !slices.Contains(Modes(), p.Mode) {
			p.Mode = ""
			return fmt.Sprintf("%q is none of rebase, squash, merge and ff-only", s.Value), "git config land.mode rebase"
		}
	case "land.onto":
		p.Target = ""
		if s.Value == "" {
			return "", ""
		}
		ref, err := object.ParseRef("refs/heads/" + strings.TrimPrefix(s.Value, "refs/heads/"))
		if err != nil {
			return fmt.Sprintf("%q is not the name of a branch", s.Value), hint
		}
		p.Target = ref
	case "land.maxfiles":
		if p.MaxFiles = 0; s.Value == "" {
			return "", ""
		}
		n, err := strconv.ParseUint(s.Value, 10, 31)
		if err != nil || n == 0 {
			return fmt.Sprintf("%q is no number of files", s.Value), "git config land.maxFiles 500"
		}
		p.MaxFiles = int(n)
	case "land.paths":
		if bad := badPathspec(s.Value, shared); bad != "" {
			return fmt.Sprintf("%q %s", s.Value, bad), hint
		}
		p.Paths = append(p.Paths, s.Value)
	case "land.require":
		switch s.Value {
		case "", "result", "unit":
			p.Unit, p.required = s.Value == "unit", s.Value != ""
		default:
			return fmt.Sprintf("%q is neither result nor unit", s.Value), "git config land.require result"
		}
	case "land.verify.setup":
		if p.Setup = (Command{s.Key, s.Value, shared}); !p.Setup.showable() {
			return hidden, hint
		}
	case "lease.name":
		if _, err := event.EncodeName(s.Value); err != nil && s.Value != "" {
			return fmt.Sprintf("%q is not the name of a lease", s.Value), hint
		}
		p.Lease = s.Value
	case "lease.protect":
		pattern := strings.TrimPrefix(s.Value, "refs/heads/")
		if _, err := path.Match(strings.TrimSuffix(pattern, "/**"), ""); err != nil || pattern == "" {
			return fmt.Sprintf("%q is no pattern such as main or release/*", s.Value), hint
		}
		p.Protect = append(p.Protect, pattern)
	}
	return "", ""
}

// maxCheckName bounds the name of a check, in bytes.
const maxCheckName = 100

// addCheck takes one check. In git's configuration the last command of a name counts.
func (p *Policy) addCheck(name string, c Command) (why string) {
	switch {
	case name == "" || len(name) > maxCheckName || event.CleanText(name, maxCheckName) != name || c.Shared && strings.ContainsFunc(name, unseen):
		return "the name of a check is one line of text"
	case c.Text != "" && strings.TrimSpace(c.Text) == "":
		return "is blank"
	case !c.showable():
		return hidden
	}
	if old := p.Find(name); old != nil {
		old.Command = c
	} else {
		p.Checks = append(p.Checks, Check{name, c})
	}
	return ""
}

// addRetries takes how often a check is run again. In git's configuration the last
// number of a name counts.
func (p *Policy) addRetries(name, value string) (why string) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > maxRetries {
		return fmt.Sprintf("%q is no number from 0 to %d", value, maxRetries)
	}
	p.retries = slices.DeleteFunc(p.retries, func(r retries) bool { return r.check == name })
	p.retries = append(p.retries, retries{name, n})
	return ""
}
