// The command release prepares and publishes the packages of a monorepo, under the
// lease of the branch that they land on. It is an example to copy: it is written with
// the standard library, and needs git, git land and git lease in PATH.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// A tool is one call of the command.
type tool struct {
	name   string // of the command
	top    string // of the checkout; whatever directory we run in, paths start there
	remote string // for git lease and git land; "" lets them choose
	dirty  bool
	json   bool
	args   []string
}

type command struct {
	name, operands, about string
	run                   func(*tool) error
}

func commands() []command {
	return []command{
		{"versions", "", "print the version of each package, dependencies first", (*tool).versions},
		{"plan", "", "print what would be released, dependents of it included", (*tool).plan},
		{"prepare", "", "write manifests and notes, and use up the fragments", (*tool).prepare},
		{"publish", "", "land what was prepared, then tag and upload it", (*tool).publish},
		{"resume", "OPERATION", "go on with what another clone has published in part", (*tool).resume},
		{"check", "NAME@VERSION...", "whether this tree is a whole release of these versions", (*tool).check},
		{"tag", "NAME...", "a step of publish; its check is tagged", (*tool).tag},
		{"upload", "NAME", "a step of publish; its check is uploaded", (*tool).upload},
		{"tagged", "NAME...", "exit 0: all of the tags are there, 1: some are not, 2: not known", known((*tool).tagged)},
		{"uploaded", "NAME", "exit 0: the registry has it, 1: it has not, 2: not known", known((*tool).uploaded)},
	}
}

// Exit codes, as git lease has them.
const (
	failed  = 1
	unknown = 2 // of a check, whose 1 means "not done"
	held    = 3
	refused = 5
	lost    = 6
	misused = 129
)

// A fault is what went wrong, and the next command.
type fault struct {
	code       int
	what, hint string
}

func (f *fault) Error() string { return f.what }

func main() {
	err := run(os.Args[1:])
	code := 0
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		code = failed
	}
	if f, ok := errors.AsType[*fault](err); ok {
		code = f.code
		if f.hint != "" {
			fmt.Fprintf(os.Stderr, "hint: %s\n", f.hint)
		}
	}
	os.Exit(code)
}

func run(args []string) error {
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
		fmt.Print(usage())
		return nil
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.call(args[1:])
		}
	}
	return &fault{misused, fmt.Sprintf("%q is no command", args[0]), "release -h"}
}

func (c command) call(args []string) error {
	t := &tool{name: c.name}
	options := flag.NewFlagSet(c.name, flag.ContinueOnError)
	options.SetOutput(io.Discard)
	options.StringVar(&t.remote, "remote", "", "")
	options.BoolVar(&t.dirty, "dirty", false, "")
	options.BoolVar(&t.json, "json", false, "")
	err := options.Parse(args)
	t.args = options.Args()
	many, some := strings.HasSuffix(c.operands, "..."), c.operands != ""
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage())
		return nil
	case err != nil:
		return &fault{misused, fmt.Sprintf("%s: %v", c.name, err), "release -h"}
	case some && len(t.args) == 0, !some && len(t.args) > 0, some && !many && len(t.args) > 1:
		return &fault{misused, fmt.Sprintf("%s takes %s, and was given %s", c.name, cmp.Or(c.operands, "no operand"), cmp.Or(strings.Join(t.args, " "), "none")),
			strings.TrimSpace("release " + c.name + " " + c.operands)}
	}
	if t.top, err = output(".", "git", "rev-parse", "--show-toplevel"); err != nil {
		return &fault{refused, "this is no checkout of a repository", "cd to one first"}
	}
	return c.run(t)
}

// known has a check that fails say so by an exit code that does not mean "not done".
func known(check func(*tool) error) func(*tool) error {
	return func(t *tool) error {
		err := check(t)
		f, ok := errors.AsType[*fault](err)
		switch {
		case err == nil || ok && f.code == failed:
			return err
		case ok:
			return &fault{unknown, f.what, f.hint}
		}
		return &fault{unknown, err.Error(), ""}
	}
}

func usage() string {
	var b strings.Builder
	b.WriteString("usage: release COMMAND [--remote REMOTE] [--dirty] [--json] [OPERAND...]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-22s %s\n", strings.TrimSpace(c.name+" "+c.operands), c.about)
	}
	b.WriteString("\n--remote is the one that decides about the lease, . for this repository itself.\n" +
		"--dirty prepares or publishes in a checkout with changes of another kind.\n" +
		"--json is for versions and plan.\n")
	return b.String()
}
