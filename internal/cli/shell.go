package cli

import (
	"fmt"
	"slices"
	"strings"
)

// formats are the ways of printing a hold. sh and fish print what their eval
// takes.
var formats = []string{"sh", "fish", "json"}

// assignments are variables for a shell to evaluate.
func assignments(format string, environ []string) string {
	var b strings.Builder
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if format == "fish" {
			fmt.Fprintf(&b, "set -gx %s %s;\n", name, quoteFish(value))
		} else {
			fmt.Fprintf(&b, "%s=%s; export %s;\n", name, quoteSh(value), name)
		}
	}
	return b.String()
}

// forgets has a shell unset a variable.
func forgets(format, name string) string {
	if format == "fish" {
		return "set -e " + name + ";\n"
	}
	return "unset " + name + ";\n"
}

func quoteSh(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// quoteFish quotes for fish, where a backslash between single quotes escapes
// another one, and the quote.
func quoteFish(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// failClosed prints a command that fails where a shell may be waiting to
// evaluate what would have been printed: eval of nothing succeeds, and
//
//	eval "$(git lease acquire)" && ./release
//
// would release. Nobody evaluates what goes to a terminal.
func (inv *invocation) failClosed(code int) {
	evaluated := false
	if inv.in.command != nil {
		evaluated = inv.in.command.evaluated != nil && inv.in.command.evaluated(inv.in)
	} else { // a misspelt command may be a misspelt acquire
		evaluated = slices.ContainsFunc(inv.commands, func(c *command) bool { return c.evaluated != nil })
	}
	switch {
	case !evaluated || inv.env.StdoutTTY || inv.in.help:
	case inv.format() == "sh":
		inv.out.write(fmt.Sprintf("(: refused, so that eval fails; exit %d)\n", code))
	default: // in every shell
		inv.out.write("false\n")
	}
}

// format is the format that was asked for, right or wrong.
func (inv *invocation) format() string {
	if format, given := inv.in.last("format"); given {
		return format
	}
	return "sh"
}
