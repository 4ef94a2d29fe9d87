package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/land"
	"gitland/internal/lease"
)

// arguments is a command line, taken apart by the rules of git and getopt:
// options may stand anywhere before "--"; "-mVALUE" and "--message=VALUE" are
// "-m VALUE"; short options without values may be bundled. Unlike git's,
// options have no abbreviations and no "--no-" forms of their own, and the
// first "--" ends the options even where an option wants a value: a value "--"
// is written "--message=--".
//
// urfave/cli gets what is left to do, a command and its options in one
// spelling. It would take an operand for a command, and ignore an option that
// follows one.
type arguments struct {
	command  *command // the tool's own when no other is named
	options  []option // in the order given
	operands []string // before the first "--"
	rest     []string // after it
	cut      bool     // there was a "--"
	help     bool
	version  bool
	// problem is the first thing that is wrong. What follows it is taken apart
	// as well, to know in which form the refusal is wanted.
	problem *fault.Error
}

type option struct{ name, value string }

// missing stands for a value that is not there. No argument of a process has a
// NUL in it.
const missing = "\x00"

// last is the value of an option as given last, and whether it was given.
func (a *arguments) last(name string) (string, bool) {
	for _, o := range slices.Backward(a.options) {
		if o.name == name {
			return o.value, true
		}
	}
	return "", false
}

func (a *arguments) refuse(format string, args ...any) *fault.Error {
	f := fault.New(fault.Usage, format, args...)
	if a.problem == nil {
		a.problem = f
	}
	return f
}

// parseArguments takes the arguments of t apart.
func parseArguments(t *tool, args []string) arguments {
	a := arguments{command: t.root}
	if i := slices.Index(args, "--"); i >= 0 {
		args, a.rest, a.cut = args[:i], args[i+1:], true
	}
	if i := firstOperand(t, args); i >= 0 {
		name := args[i]
		switch cmd := t.command(name); {
		case name == "help":
			a.help = true
		case cmd != nil:
			a.command = cmd
		default:
			a.unknownBefore(t, name, args[:i])
			a.unknown(t, name, args)
		}
		args = slices.Delete(slices.Clone(args), i, i+1)
		if a.help {
			args = a.topic(t, args)
		}
	}
	a.scan(t, args)
	return a
}

// topic takes the command that help is wanted on out of the arguments.
func (a *arguments) topic(t *tool, args []string) []string {
	i := firstOperand(t, args)
	if i < 0 {
		return args
	}
	if a.command = t.command(args[i]); a.command == nil {
		hint := t.name + " -h"
		if near := t.nearest(args[i]); near != "" {
			hint = "did you mean: " + t.name + " " + near + " -h"
		}
		a.refuse("%q is no command of %s", args[i], t.name).WithHint("%s", hint)
	}
	return slices.Delete(args, i, i+1)
}

// unknown refuses a word that is no command: what somebody might have meant by
// it is never guessed.
func (a *arguments) unknown(t *tool, name string, args []string) {
	elsewhere := ""
	if t.operand != "" {
		line := behind(t, t.root, args, a.rest)
		if i := slices.Index(line, "--"); !slices.ContainsFunc(line[:i], func(w string) bool { return isOption(w) }) {
			line = slices.Insert(line, i, "-m", "NOTE")
		}
		elsewhere = strings.NewReplacer("LINE", t.line(line...), "WORD", fault.Command(name)).Replace(t.operand)
	}
	meant := ""
	if near := t.nearest(name); near != "" {
		meant = t.name + " " + near
	} else if other := t.other(); other.command(name) != nil {
		meant = other.name + " " + name
	}
	if meant != "" {
		f := a.refuse("%q is no command of %s", name, t.name).WithHint("did you mean: %s", meant)
		if t.operand == "" {
			a.command = nil
		} else {
			f.Hint += "   (or, " + elsewhere + ")"
		}
		return
	}
	if t.operand != "" {
		a.refuse("%q is no command of %s, and what it works on goes elsewhere", name, t.name).
			WithHint("%s", elsewhere)
		return
	}
	var names []string
	for _, c := range t.commands {
		names = append(names, c.name)
	}
	a.refuse("%q is no command of %s", name, t.name).WithHint("one of: %s   (%s -h)", strings.Join(names, ", "), t.name)
	a.command = nil
}

// unknownBefore refuses an option before the word name, which is no command: what stands
// behind an option that is not known may be its value. Where a command may have been
// meant, the option may be that one's.
func (a *arguments) unknownBefore(t *tool, name string, args []string) {
	lookup := t.anyFlag
	if t.operand != "" && t.nearest(name) == "" && t.other().command(name) == nil {
		lookup = t.root.flag
	}
	for i := 0; i < len(args); i++ {
		if spelt := unknownIn(args[i], lookup); spelt != "" {
			a.unknownOption(t, spelt)
		}
		if wantsNext(args[i], t.anyFlag) {
			i++
		}
	}
}

// unknownIn is the first option in arg that is not known; "" where all are.
func unknownIn(arg string, lookup func(string) cli.Flag) string {
	if long, ok := strings.CutPrefix(arg, "--"); ok {
		if name, _, _ := strings.Cut(long, "="); len(name) < 2 || lookup(name) == nil {
			return "--" + name
		}
		return ""
	}
	for _, c := range arg[1:] {
		flag := lookup(string(c))
		if flag == nil {
			return "-" + string(c)
		}
		if takesValue(flag) {
			break
		}
	}
	return ""
}

// behind are args, and rest, which stood behind "--", with the operands that stand
// before it moved there. The name of cmd stays where it is.
func behind(t *tool, cmd *command, args, rest []string) []string {
	var line, operands []string
	for i := 0; i < len(args); i++ {
		switch {
		case isOption(args[i]):
			line = append(line, args[i])
			if wantsNext(args[i], t.anyFlag) && i+1 < len(args) {
				i++
				line = append(line, args[i])
			}
		case cmd.name == args[i] && len(operands) == 0 && !slices.Contains(line, cmd.name):
			line = append(line, args[i])
		default:
			operands = append(operands, args[i])
		}
	}
	return slices.Concat(line, []string{"--"}, operands, rest)
}

// line is a command line of t, as a shell takes it.
func (t *tool) line(args ...string) string {
	return fault.Command(append(strings.Fields(t.name), args...)...)
}

// nearest is the command whose name is misspelt as name, "" when there is none.
func (t *tool) nearest(name string) string {
	for _, c := range t.commands {
		if len(name) > 2 && lease.Misspelt(name, c.name) {
			return c.name
		}
	}
	return ""
}

// firstOperand is the index of the first argument that is neither an option nor
// the value of one, in any command of t; -1 when there is none.
func firstOperand(t *tool, args []string) int {
	for i := 0; i < len(args); i++ {
		if !isOption(args[i]) {
			return i
		}
		if wantsNext(args[i], t.anyFlag) {
			i++
		}
	}
	return -1
}

func isOption(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// wantsNext reports whether the value of the option arg is the next argument.
func wantsNext(arg string, lookup func(string) cli.Flag) bool {
	if long, ok := strings.CutPrefix(arg, "--"); ok {
		return len(long) > 1 && !strings.Contains(long, "=") && takesValue(lookup(long))
	}
	for i, c := range arg[1:] {
		flag := lookup(string(c))
		if flag == nil || takesValue(flag) {
			return flag != nil && i+2 == len(arg)
		}
	}
	return false
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// scan takes options and operands apart.
func (a *arguments) scan(t *tool, args []string) {
	lookup := t.anyFlag
	if a.command != nil {
		lookup = a.command.flag
	}
	for i := 0; i < len(args); i++ {
		arg, next := args[i], missing
		if !isOption(arg) {
			a.operands = append(a.operands, arg)
			continue
		}
		// Also for an option of another command, whose value is no operand.
		if wantsNext(arg, t.anyFlag) {
			if i++; i < len(args) {
				next = args[i]
			}
		}
		if long, ok := strings.CutPrefix(arg, "--"); ok {
			a.long(t, lookup, long, next)
		} else {
			a.short(t, lookup, arg[1:], next)
		}
	}
}

func (a *arguments) long(t *tool, lookup func(string) cli.Flag, text, next string) {
	name, value, attached := strings.Cut(text, "=")
	flag := lookup(name)
	switch {
	case len(name) < 2 || flag == nil:
		a.unknownOption(t, "--"+name)
	case !takesValue(flag) && attached:
		a.refuse("option --%s takes no value", name)
	case !takesValue(flag):
		a.add(flag, "true")
	case attached:
		a.add(flag, value)
	default:
		a.add(flag, next)
	}
}

func (a *arguments) short(t *tool, lookup func(string) cli.Flag, cluster, next string) {
	for i, c := range cluster {
		name := string(c)
		flag := lookup(name)
		switch {
		case flag == nil:
			a.unknownOption(t, "-"+name)
			return
		case !takesValue(flag):
			a.add(flag, "true")
			continue
		case i+len(name) < len(cluster):
			next = cluster[i+len(name):]
		}
		a.add(flag, next)
		return
	}
}

func (a *arguments) add(flag cli.Flag, value string) {
	switch name := flag.Names()[0]; {
	case name == "help":
		a.help = true
	case name == "version":
		a.version = true
	case value == missing:
		a.refuse("option %s needs a value", dashed(name))
	case value == "" && !mayBeEmpty(flag):
		a.refuse("option %s has an empty value", dashed(name))
	case stands(flag, value):
		a.refuse("option %s: %q only stands for what is meant", dashed(name), value).
			WithHint("put your own in place of %s", value)
	default:
		a.options = append(a.options, option{name, value})
	}
}

// stands reports whether a value was only copied from a hint or a usage. A reason is
// looked at where it is used.
func stands(f cli.Flag, value string) bool {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok || f.Names()[0] == "reason" {
		return false
	}
	usage := strings.SplitN(doc.GetUsage(), "`", 3)
	return len(usage) == 3 && value == usage[1] || f.Names()[0] == "message" && (lease.Stands(value) && value == strings.ToUpper(value) || value == land.Message)
}

func (a *arguments) unknownOption(t *tool, spelt string) {
	c := a.command
	if c == nil {
		c = t.root
	}
	name := c.fullName(t)
	f := a.refuse("%s has no option %s", name, spelt)
	for _, flag := range c.allFlags() {
		for _, n := range flag.Names() {
			if len(n) > 2 && lease.Misspelt(strings.TrimPrefix(spelt, "--"), n) {
				f.WithHint("did you mean: --%s   (%s -h)", n, name)
			}
		}
	}
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// canonical are the arguments for urfave/cli: a program, its command, and the
// options in one spelling.
func (a *arguments) canonical(t *tool) []string {
	args := []string{t.name}
	if a.command != t.root {
		args = append(args, a.command.name)
	}
	for _, o := range a.options {
		args = append(args, fmt.Sprintf("--%s=%s", o.name, o.value))
	}
	return args
}
