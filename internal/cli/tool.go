package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
)

// Version is what --version prints.
const Version = "0.1.0"

// A tool is one of our two command lines.
type tool struct {
	name     string // "git lease"
	root     *command
	commands []*command
	// operand is the hint for a word that is no command, WORD in it; "" lists
	// the commands. LINE in it is the command line with what it works on behind --.
	operand string
}

// A command is what a tool can do.
type command struct {
	name     string // "" for the tool itself
	synopsis string // what follows the name; a line for each form, begun by a space where it continues one
	summary  string // in the list of commands
	about    string // a paragraph or two
	examples string // one command line each
	exits    []int  // codes beside those that every command has
	one      string // what code 1 means of this command beside an unexpected failure; mostly nothing
	flags    []cli.Flag
	// evaluated reports whether a shell may be waiting to evaluate what the
	// command prints, so that a refusal has to be one there too.
	evaluated func(arguments) bool
	run       func(context.Context, *call) error
}

// A call is a command with its options.
type call struct {
	*invocation
	opts *cli.Context
}

func (t *tool) command(name string) *command {
	for _, c := range t.commands {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (c *command) fullName(t *tool) string { return strings.TrimSuffix(t.name+" "+c.name, " ") }

// flag finds an option of c by any of its names; nil when there is none.
func (c *command) flag(name string) cli.Flag {
	for _, f := range c.allFlags() {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

func (c *command) allFlags() []cli.Flag {
	flags := append(c.flags[:len(c.flags):len(c.flags)], &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show this"})
	if c.name == "" {
		flags = append(flags, &cli.BoolFlag{Name: "version", Usage: "show the version"})
	}
	return flags
}

// anyFlag finds an option of any command. Options of one name are alike in all
// commands, as far as this is asked.
func (t *tool) anyFlag(name string) cli.Flag {
	for _, c := range append([]*command{t.root}, t.commands...) {
		if f := c.flag(name); f != nil {
			return f
		}
	}
	return nil
}

// dispatch runs the command that the arguments name.
func (inv *invocation) dispatch(ctx context.Context) error {
	switch {
	case inv.in.help && inv.in.command != nil:
		inv.out.write(help(inv.tool, inv.in.command))
		return nil
	case inv.in.problem != nil:
		return inv.in.problem
	case inv.in.version:
		inv.out.printf("%s %s\n", inv.name, Version)
		return nil
	}
	return inv.app().RunContext(ctx, inv.in.canonical(inv.tool))
}

// app is the tool as urfave/cli has it. Help, operands and errors are ours.
func (inv *invocation) app() *cli.App {
	app := &cli.App{
		Name: inv.name, HideHelp: true, HideVersion: true,
		Flags: inv.root.flags, Action: inv.action(inv.root),
		Reader: inv.env.Stdin, Writer: io.Discard, ErrWriter: io.Discard,
		DisableSliceFlagSeparator: true,                         // "a, b" is one value
		ExitErrHandler:            func(*cli.Context, error) {}, // it would exit
		OnUsageError:              usageError,
	}
	for _, c := range inv.commands {
		app.Commands = append(app.Commands, &cli.Command{
			Name: c.name, Flags: c.flags, Action: inv.action(c), HideHelp: true, OnUsageError: usageError})
	}
	return app
}

func (inv *invocation) action(c *command) cli.ActionFunc {
	return func(opts *cli.Context) error {
		return c.run(opts.Context, &call{invocation: inv, opts: opts})
	}
}

// usageError gives an error of package flag, which is about a value, the
// spelling of ours.
func usageError(_ *cli.Context, err error, _ bool) error {
	value, what, found := strings.Cut(err.Error(), " for flag -")
	name, why, explained := strings.Cut(what, ": ")
	if !found || !explained {
		return fault.New(fault.Usage, "%w", err)
	}
	return fault.New(fault.Usage, "%s for option %s: %s", value, dashed(name), why)
}

// before are the arguments before "--".
func (c *call) before() []string {
	if i := slices.Index(c.args, "--"); i >= 0 {
		return c.args[:i]
	}
	return c.args
}

// noOperands refuses words before "--", for a command that has no use for them.
func (c *call) noOperands(hint string) error {
	if len(c.in.operands) == 0 {
		return nil
	}
	word := c.in.operands[0]
	if word == "" {
		return fault.New(fault.Usage, "%s does not understand an empty word", c.in.command.fullName(c.tool))
	}
	return fault.New(fault.Usage, "%s does not understand %q", c.in.command.fullName(c.tool), word).
		WithHint("%s", strings.ReplaceAll(hint, "WORD", fault.Command(word)))
}

// names are the lease names among the operands, on both sides of "--".
func (c *call) names(most int) ([]string, error) {
	names := append(c.in.operands[:len(c.in.operands):len(c.in.operands)], c.in.rest...)
	return names, checkNames(names, most, c.in.command.fullName(c.tool))
}

func checkNames(names []string, most int, command string) error {
	if len(names) > most {
		return fault.New(fault.Usage, "%s takes one lease's name, and %q is one more", command, names[most])
	}
	for _, n := range names {
		if n == "" {
			return fault.New(fault.Usage, "the lease's name is empty").WithHint("leave it out for the default")
		}
	}
	return nil
}

// name is the lease's name among the operands, "" when there is none.
func (c *call) name() (string, error) {
	names, err := c.names(1)
	if err != nil {
		return "", err
	}
	return one(names), nil
}

// only refuses options that mean nothing without another one.
func (c *call) only(with string, options ...string) error {
	if _, given := c.in.last(with); given {
		return nil
	}
	for _, o := range options {
		if _, given := c.in.last(o); given {
			return fault.New(fault.Usage, "option %s means nothing without %s", dashed(o), dashed(with))
		}
	}
	return nil
}

// apart refuses two options that say different things.
func (c *call) apart(one, other string) error {
	_, a := c.in.last(one)
	_, b := c.in.last(other)
	if a && b {
		return fault.New(fault.Usage, "options %s and %s exclude each other", dashed(one), dashed(other))
	}
	return nil
}

// other is our other tool: people give its commands to this one.
func (t *tool) other() *tool {
	if land := landTool(); land.name != t.name {
		return land
	}
	return leaseTool()
}
